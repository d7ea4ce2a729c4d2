// A small HTTP server on the loopback address 127.0.0.1, for the pages of `pipesim serve`.
//
// cpp-httplib, with its libraries of TLS and compression, is a module that is loaded here. No other
// command waits for it, and everything builds without it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace pipesim {

struct HttpRequest {
  std::string method;  // GET or POST
  std::string path;    // without what follows a question mark
  std::string host;    // the headers of these names; empty: none
  std::string origin;
  std::string body;
};

// Sends a piece. Returns false once nobody reads any more.
using HttpWriter = std::function<bool(std::string_view piece)>;

struct HttpAnswer {
  int status = 200;
  std::string type = "application/json";
  std::string body = {};
  // Writes in the body's place, piece by piece. Throws nothing.
  std::function<void(const HttpWriter&)> stream = {};
};

// Called by several threads at once.
using HttpHandler = std::function<HttpAnswer(const HttpRequest&)>;

class HttpServer {
 public:
  HttpServer() = default;
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;
  virtual ~HttpServer() = default;
  [[nodiscard]] virtual int port() const = 0;
  virtual void run() = 0;   // returns after stop()
  virtual void stop() = 0;  // by any thread
};

inline constexpr std::size_t kMostBody = 16 << 10;  // bytes of a request's body; more are refused
inline constexpr int kHttpThreads = 8;

// True where this build has the module.
bool has_http_server();

// Listens on a port, any free one for 0. InfeasibleError without the module, or where the port is
// taken.
std::unique_ptr<HttpServer> make_http_server(int port, HttpHandler handler);

// The module's one symbol, as extern "C": nothing where the port is taken.
using HttpModuleEntry = HttpServer*(int port, HttpHandler* handler);
inline constexpr const char* kHttpModuleEntry = "pipesim_http_server";

}  // namespace pipesim
