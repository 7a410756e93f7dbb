import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.nio.file.Files;

public class Tomcat extends HttpServlet {
    protected void doPost(HttpServletRequest request, HttpServletResponse response) throws IOException {
        String path = request.getRequestURI();
        request.getInputStream().readAllBytes();
        if (path.startsWith("/204")) response.setStatus(204);
        if (path.equals("/204-length")) response.setContentLength(0);
        if (path.equals("/close")) response.setHeader("Connection", "close");
        if (path.startsWith("/204")) return;
        response.getOutputStream().print("o");
        if (path.equals("/chunked")) response.flushBuffer();
        response.getOutputStream().print("k");
    }

    public static void main(String[] arguments) throws Exception {
        var tomcat = new org.apache.catalina.startup.Tomcat();
        tomcat.setBaseDir(Files.createTempDirectory("tomcat").toString());
        tomcat.setHostname("127.0.0.1");
        tomcat.setPort(Integer.parseInt(arguments[0]));
        tomcat.getConnector();
        var context = tomcat.addContext("", null);
        org.apache.catalina.startup.Tomcat.addServlet(context, "answers", new Tomcat());
        context.addServletMappingDecoded("/", "answers");
        tomcat.start();
        tomcat.getServer().await();
    }
}
