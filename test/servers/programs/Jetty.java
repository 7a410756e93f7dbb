import java.io.IOException;
import javax.servlet.http.HttpServletRequest;
import javax.servlet.http.HttpServletResponse;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.handler.AbstractHandler;

public class Jetty extends AbstractHandler {
    public void handle(String path, Request base, HttpServletRequest request, HttpServletResponse response)
            throws IOException {
        base.setHandled(true);
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
        Server server = new Server(new java.net.InetSocketAddress("127.0.0.1", Integer.parseInt(arguments[0])));
        server.setHandler(new Jetty());
        server.start();
    }
}
