#include "heed/serve/server.h"

#include "heed/serve/app.h"

namespace heed::serve {

int serve(const ServeOptions& options, const std::function<void(const std::string& address)>& ready) {
  check<UsageError>(!options.token.empty() || is_loopback(options.http.host), "serve: --host ", options.http.host,
                    " can be reached from other machines, expected --token with it");
  HttpServer* running = nullptr;
  auto app = std::make_unique<App>(options, [&running] { return running ? running->connections() : 0; });
  HttpServer server(options.http, {.handle = [&app](const ExchangePtr& exchange) { app->handle(exchange); },
                                   .observe = [&app](const Served& served) { app->observe(served); },
                                   .error = [](int status, const std::string& message) { return error_response(status, message).body; },
                                   .stopping = [&app] { app->stop(); }});
  running = &server;
  const bool ipv6 = options.http.host.find(':') != std::string::npos;
  ready("http://" + (ipv6 ? "[" + options.http.host + "]" : options.http.host) + ":" + std::to_string(server.port()));
  const int exit_code = server.run();
  app.reset();  // its threads still use connections
  return exit_code;
}

}  // namespace heed::serve
