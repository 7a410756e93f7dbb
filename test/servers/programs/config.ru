run lambda { |env|
  env["rack.input"].read
  case env["PATH_INFO"]
  when "/204" then [204, {}, []]
  when "/204-length" then [204, { "Content-Length" => "0" }, []]
  when "/103"
    env["rack.early_hints"].call("Link" => "</a>; rel=preload")
    [200, { "Content-Length" => "2" }, ["ok"]]
  when "/chunked" then [200, {}, ["o", "k"]]
  when "/close" then [200, { "Content-Length" => "2", "Connection" => "close" }, ["ok"]]
  else [200, { "Content-Length" => "2" }, ["ok"]]
  end
}
