// The only place that names cpp-httplib.
#include <httplib.h>
#include <sys/socket.h>
#include <utility>

#include "sim/http/http.h"

namespace pipesim {
namespace {

constexpr const char* kLoopback = "127.0.0.1";

// A port that another server listens on is refused: no two share one.
void reuse_address(socket_t socket) {
  const int yes = 1;
  ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
}

class Server : public HttpServer {
 public:
  explicit Server(HttpHandler handler) : handler_(std::move(handler)) {
    const auto answer = [this](const httplib::Request& request, httplib::Response& response) {
      fill(response, handler_({request.method, request.path, request.get_header_value("Host"),
                               request.get_header_value("Origin"), request.body}));
    };
    server_.Get(".*", answer);
    server_.Post(".*", answer);
    server_.new_task_queue = [] { return new httplib::ThreadPool(kHttpThreads); };
    server_.set_socket_options(reuse_address);
    server_.set_payload_max_length(kMostBody);
    server_.set_read_timeout(5);
    server_.set_write_timeout(5);
    server_.set_keep_alive_timeout(1);
    server_.set_default_headers({{"Cache-Control", "no-store"},
                                 {"Cross-Origin-Resource-Policy", "same-origin"},
                                 {"Referrer-Policy", "no-referrer"},
                                 {"X-Content-Type-Options", "nosniff"},
                                 {"X-Frame-Options", "DENY"}});
  }

  bool bind(int port) {
    port_ = port == 0 ? server_.bind_to_any_port(kLoopback)
                      : (server_.bind_to_port(kLoopback, port) ? port : -1);
    return port_ > 0;
  }
  [[nodiscard]] int port() const override { return port_; }
  void run() override { server_.listen_after_bind(); }
  void stop() override { server_.stop(); }

 private:
  static void fill(httplib::Response& response, HttpAnswer answer) {
    response.status = answer.status;
    if (!answer.stream) return response.set_content(answer.body, answer.type);
    response.set_chunked_content_provider(
        answer.type, [stream = std::move(answer.stream)](size_t, httplib::DataSink& sink) {
          stream([&sink](std::string_view piece) {
            return sink.is_writable() && sink.write(piece.data(), piece.size());
          });
          sink.done();
          return true;
        });
  }

  HttpHandler handler_;
  httplib::Server server_;
  int port_ = -1;
};

}  // namespace
}  // namespace pipesim

extern "C" pipesim::HttpServer* pipesim_http_server(int port, pipesim::HttpHandler* handler) {
  auto server = std::make_unique<pipesim::Server>(std::move(*handler));
  return server->bind(port) ? server.release() : nullptr;
}
