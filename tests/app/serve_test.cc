// The server of `pipesim serve`: what it answers, and what it refuses. By HTTP, without a browser.
#include <arpa/inet.h>
#include <array>
#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <sys/socket.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include "sim/http/http.h"
#include "tests/app/command.h"

namespace pipesim::serve_test {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;

struct Reply {
  int status = 0;
  std::string body;
  [[nodiscard]] json value() const { return json::parse(body); }
  // Progress may come first.
  [[nodiscard]] std::string error() const { return lines().back().at("error"); }
  // At least one: null where nothing came.
  [[nodiscard]] std::vector<json> lines() const {
    std::vector<json> all;
    std::istringstream text(body);
    for (std::string line; std::getline(text, line);) all.push_back(json::parse(line));
    if (all.empty()) all.emplace_back();
    return all;
  }
};

std::string without_chunks(const std::string& text) {
  std::string body;
  for (size_t at = 0; at < text.size();) {
    const size_t size = std::stoul(text.substr(at), nullptr, 16);
    at = text.find("\r\n", at) + 2;
    body += text.substr(at, size);
    at += size + 2;
  }
  return body;
}

class Connection {
 public:
  explicit Connection(int port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket_, reinterpret_cast<sockaddr*>(&to), sizeof(to)), 0);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() { ::close(socket_); }

  void send(const std::string& text) const {
    EXPECT_GE(::send(socket_, text.data(), text.size(), MSG_NOSIGNAL), 0);
  }
  [[nodiscard]] Reply receive() const {
    std::string text;
    std::array<char, 65536> buffer{};
    for (ssize_t got; (got = ::recv(socket_, buffer.data(), buffer.size(), 0)) > 0;) {
      text.append(buffer.data(), static_cast<size_t>(got));
    }
    const size_t end = text.find("\r\n\r\n");
    if (end == std::string::npos) return {};
    const std::string body = text.substr(end + 4);
    const bool chunked = text.find("Transfer-Encoding: chunked") < end;
    return {std::stoi(text.substr(9, 3)), chunked ? without_chunks(body) : body};
  }

 private:
  int socket_;
};

class Serve : public testing::Command {
 protected:
  void SetUp() override {
    Command::SetUp();
    if (!has_http_server()) GTEST_SKIP() << "built without cpp-httplib";
    start();
    for (int i = 0; i < 600 && read("said").find('\n') == std::string::npos; ++i) {
      std::this_thread::sleep_for(milliseconds(50));
    }
    const std::string address = read("said").substr(0, read("said").find('\n'));
    ASSERT_TRUE(address.starts_with("http://127.0.0.1:")) << address;
    port_ = std::stoi(address.substr(17));
    base_ = address.substr(address.find('/', 17));
  }
  void TearDown() override {
    if (server_ > 0) ::kill(server_, SIGKILL);
    if (server_ > 0) ::waitpid(server_, nullptr, 0);
    Command::TearDown();
  }

  // Its exit code after a signal.
  int end(int signal) {
    ::kill(server_, signal);
    int status = 0;
    ::waitpid(std::exchange(server_, 0), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  [[nodiscard]] std::string request(const std::string& method, const std::string& path,
                                    const std::string& body, const std::string& headers) const {
    return fmt::format("{} {} HTTP/1.1\r\n{}Connection: close\r\nContent-Length: {}\r\n\r\n{}",
                       method, path, headers, body.size(), body);
  }
  [[nodiscard]] std::string host() const { return fmt::format("Host: 127.0.0.1:{}\r\n", port_); }
  [[nodiscard]] Reply ask(const std::string& method, const std::string& path,
                          const std::string& body, const std::string& headers) const {
    const Connection connection(port_);
    connection.send(request(method, path, body, headers));
    return connection.receive();
  }
  [[nodiscard]] Reply post(const std::string& place, const std::string& body) const {
    return ask("POST", base_ + place, body, host());
  }

  static json question() {
    return {{"model", "zb-1.5b"}, {"cluster", "dgx-a100"}, {"gpus", 8},
            {"batch", 32},        {"length", 1024},        {"schedule", "1f1b"}};
  }
  static json long_question() {
    return {{"model", "deepseek-v3"},
            {"cluster", "dgx-h100"},
            {"gpus", 4096},
            {"batch", 16384},
            {"length", 8192}};
  }
  void expect_refused(const json& change, const std::string& why) const {
    json asked = question();
    asked.update(change);
    const Reply reply = post("api/plan", asked.dump());
    EXPECT_EQ(reply.status, 400);
    EXPECT_NE(reply.error().find(why), std::string::npos) << reply.body;
  }

  int port_ = 0;
  std::string base_;  // "/TOKEN/"
  pid_t server_ = 0;

 private:
  void start() {
    const std::string said = (folder_ / "said").string();
    write("said", "");
    server_ = ::fork();
    if (server_ != 0) return;
    const int file = ::open(said.c_str(), O_WRONLY | O_TRUNC);
    ::dup2(file, 1);
    ::dup2(file, 2);
    ::execl(PIPESIM_EXECUTABLE, "pipesim", "serve", nullptr);
    ::_exit(127);
  }
};

TEST_F(Serve, AnswersAsTheCommandDoes) {
  json asked = question();
  asked.update({{"precision", "fp16"}, {"bandwidth", 0.5}, {"memory", 0.75}, {"vocabulary", 2}});
  const auto lines = post("api/plan", asked.dump()).lines();
  ASSERT_GE(lines.size(), 2U);
  const json answer = lines[lines.size() - 2].at("answer");
  const json plan = answer.at("report").at("plan");
  const std::vector<std::string> words = plan.at("command");
  std::string command;
  for (const std::string& word : words) command += " '" + word + "'";
  EXPECT_NE(command.find("cluster.network.bandwidth=12.5 GB/s"), std::string::npos) << command;
  EXPECT_NE(command.find("cluster.gpu.memory=60 GiB"), std::string::npos) << command;
  EXPECT_EQ(run(command + " --json plan.json").code, 0);
  EXPECT_EQ(plan.at("document"), json::parse(read("plan.json")));
  const json failures = lines.back().at("failures");
  EXPECT_EQ(run(command + " --tokens 1T --json days.json").code, 0);
  const json first = json::parse(read("days.json"))["plans"][0]["layouts"][0];
  EXPECT_NEAR(failures.at("days"), first.at("days"), 1e-9);
  EXPECT_GT(failures.at("goodput"), 0.9);
  EXPECT_LT(failures.at("goodput"), 1);
}

TEST_F(Serve, RunsARowOfAnAnswer) {
  const auto lines = post("api/plan", question().dump()).lines();
  const json answer = lines.at(lines.size() - 2).at("answer");
  const json asked{{"answer", answer.at("number")}, {"row", 0}};
  const json row = post("api/run", asked.dump()).value();
  EXPECT_GT(row.at("timeline").at("seconds"), 0);
  EXPECT_GE(row.at("devices").size(), 1U);
  EXPECT_EQ(post("api/run", R"({"answer": 1, "row": 99})").status, 400);
  EXPECT_EQ(post("api/run", R"({"answer": 9, "row": 0})").error(),
            "this answer is not kept any more: ask again");
}

TEST_F(Serve, MoreFailuresLeaveLessTraining) {
  std::set<long> answers;
  const auto goodput = [&](double failures) {
    json asked = question();
    asked["failures"] = failures;
    const auto lines = post("api/plan", asked.dump()).lines();
    answers.insert(lines.at(lines.size() - 2).at("answer").at("number").get<long>());
    return lines.back().at("failures").at("goodput").get<double>();
  };
  EXPECT_LT(goodput(500), goodput(4));
  EXPECT_EQ(goodput(4), goodput(4));
  EXPECT_EQ(answers.size(), 1U);  // nothing else has changed
}

TEST_F(Serve, RefusesOtherHostsOriginsAndAddresses) {
  const std::string asked = question().dump();
  const std::string place = base_ + "api/plan";
  EXPECT_EQ(ask("POST", place, asked, "Host: evil.example\r\n").status, 403);
  EXPECT_EQ(ask("POST", place, asked, "Host: 127.0.0.1\r\n").status, 403);
  for (const char* origin : {"http://evil.example", "http://127.0.0.1:1", "null"}) {
    const std::string headers = host() + "Origin: " + origin + "\r\n";
    EXPECT_EQ(ask("POST", place, asked, headers).status, 403) << origin;
  }
  EXPECT_EQ(ask("POST", "/api/plan", asked, host()).status, 404);
  EXPECT_EQ(ask("GET", "/", "", host()).status, 404);
  const std::string guessed = "/" + std::string(base_.size() - 2, '0') + "/api/choices";
  EXPECT_EQ(ask("GET", guessed, "", host()).status, 404);
  for (const char* file : {"../../etc/passwd", "%2e%2e/etc/passwd", "page.css", "api/plan"}) {
    EXPECT_EQ(ask("GET", base_ + file, "", host()).status, 404) << file;
  }
  EXPECT_EQ(ask("GET", base_ + "api/choices", "", host()).status, 200);
}

TEST_F(Serve, RefusesWhatIsNoQuestion) {
  expect_refused({{"model", "zb-1.6b"}}, "did you mean 'zb-1.5b'?");
  expect_refused({{"model", "config.json"}}, "unknown model");
  expect_refused({{"cluster", "dgx-a100:16"}}, "unknown cluster");
  expect_refused({{"schedule", "order.csv"}}, "unknown schedule");
  expect_refused({{"gpus", 1 << 20}}, "16384");
  expect_refused({{"memory", 1000}}, "4");
  expect_refused({{"settings", "cost.calibration=/etc/passwd"}}, "unknown key");
  EXPECT_EQ(post("api/plan", "[").status, 400);
  EXPECT_EQ(post("api/plan", "[]").status, 400);
  EXPECT_EQ(post("api/plan", std::string(kMostBody + 1, ' ')).status, 413);
  json asked = question();
  asked["gpus"] = 12;
  EXPECT_NE(post("api/plan", asked.dump()).error().find("give whole nodes"), std::string::npos);
}

TEST_F(Serve, EndsASearchThatNobodyWantsAnyMore) {
  const Connection first(port_);
  const auto asked = request("POST", base_ + "api/plan", long_question().dump(), host());
  first.send(asked);
  std::this_thread::sleep_for(milliseconds(1000));
  const Connection second(port_);  // the server ends one that is silent for a second
  second.send(request("POST", base_ + "api/plan", question().dump(), host()));
  EXPECT_EQ(first.receive().lines().back(), json({{"stopped", true}}));
  EXPECT_TRUE(second.receive().lines().back().contains("failures"));
  {
    const Connection left(port_);
    left.send(asked);
    std::this_thread::sleep_for(milliseconds(1000));
  }
  EXPECT_TRUE(post("api/plan", question().dump()).lines().back().contains("failures"));
}

TEST_F(Serve, ListensOnThisMachineAlone) {
  std::ifstream sockets("/proc/net/tcp");
  const std::string port = fmt::format(":{:04X}", port_);
  int listening = 0;
  for (std::string line; std::getline(sockets, line);) {
    if (line.find(port + " 00000000:0000 0A") == std::string::npos) continue;
    EXPECT_NE(line.find("0100007F" + port), std::string::npos) << line;
    ++listening;
  }
  EXPECT_EQ(listening, 1);
  const auto taken = run(fmt::format("serve --port {}", port_));
  EXPECT_EQ(taken.code, 1);
  EXPECT_NE(taken.output.find("is taken"), std::string::npos) << taken.output;
}

TEST_F(Serve, EndsWithCtrlCInTheMiddleOfASearch) {
  const Connection connection(port_);
  connection.send(request("POST", base_ + "api/plan", long_question().dump(), host()));
  std::this_thread::sleep_for(milliseconds(1000));
  EXPECT_EQ(end(SIGINT), 0);
  EXPECT_EQ(connection.receive().lines().back(), json({{"stopped", true}}));
}

}  // namespace
}  // namespace pipesim::serve_test
