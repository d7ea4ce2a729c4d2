#include "sim/http/http.h"

#include <dlfcn.h>
#include <filesystem>
#include <fmt/format.h>

#include "sim/core/data_folder.h"
#include "sim/core/error.h"

namespace pipesim {
namespace {

std::string http_module() { return module_file("http.so"); }

HttpModuleEntry* load_http() {
  if (!has_http_server()) {
    throw InfeasibleError(
        "pipesim was built without an HTTP server: install libcpp-httplib-dev and build it again");
  }
  void* library = ::dlopen(http_module().c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    throw InfeasibleError(fmt::format("the HTTP server cannot be loaded: {}", ::dlerror()));
  }
  auto* const entry = reinterpret_cast<HttpModuleEntry*>(::dlsym(library, kHttpModuleEntry));
  if (entry == nullptr) throw InfeasibleError(::dlerror());
  return entry;
}

}  // namespace

bool has_http_server() {
  std::error_code ignored;
  return std::filesystem::exists(http_module(), ignored);
}

std::unique_ptr<HttpServer> make_http_server(int port, HttpHandler handler) {
  std::unique_ptr<HttpServer> server(load_http()(port, &handler));
  if (!server) {
    throw InfeasibleError(
        fmt::format("port {} of 127.0.0.1 is taken or not allowed: choose another", port));
  }
  return server;
}

}  // namespace pipesim
