#include "holotensor/source/test_http_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <string_view>
#include <thread>

namespace hologram::holotensor {

struct TestHttpServer::Impl {
  std::vector<std::byte> file;
  std::atomic<Mode> mode;
  std::atomic<bool> stopping = false;
  std::atomic<unsigned> requests = 0, at_once = 0, most_at_once = 0;
  int listener = -1;
  int port = 0;
  std::thread acceptor;
  std::mutex mutex;
  std::vector<std::thread> workers;

  // Sleeps in small steps, so that the server can always be stopped.
  bool pause(std::chrono::milliseconds time) {
    const auto until = std::chrono::steady_clock::now() + time;
    while (!stopping && std::chrono::steady_clock::now() < until) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return !stopping;
  }

  static bool send_all(int socket, const void* data, size_t size) {
    const char* bytes = static_cast<const char*>(data);
    while (size > 0) {
      const ssize_t sent = ::send(socket, bytes, size, MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes += sent;
      size -= static_cast<size_t>(sent);
    }
    return true;
  }

  // Reads one request's head; empty when the connection ends.
  std::string read_head(int socket) {
    std::string head;
    while (!stopping && !head.ends_with("\r\n\r\n")) {
      pollfd wait = {socket, POLLIN, 0};
      if (::poll(&wait, 1, 20) == 0) continue;
      char c = 0;
      if (::recv(socket, &c, 1, 0) <= 0) return {};
      head.push_back(c);
    }
    return stopping ? std::string() : head;
  }

  // False: the connection ends.
  bool answer(int socket, const std::string& head) {
    const Mode now = mode;
    const size_t size = now == Mode::short_file ? file.size() / 2 : file.size();
    unsigned long long first = 0, last = size - 1;
    bool ranged = false;
    if (const size_t at = head.find("Range: bytes="); at != std::string::npos) {
      ranged = std::sscanf(head.c_str() + at, "Range: bytes=%llu-%llu", &first, &last) == 2;
    }
    if (now == Mode::silent) return pause(std::chrono::hours(1));
    if (now == Mode::not_http) {
      send_all(socket, "\x01\x02 what?\n\n", 11);
      return false;
    }
    if (now == Mode::error_500 || (ranged && first >= size)) {
      const std::string text = std::string("HTTP/1.1 ") +
                               (now == Mode::error_500 ? "500 Broken" : "416 No Such Range") +
                               "\r\nContent-Length: 5\r\n\r\nsorry";
      return send_all(socket, text.data(), text.size());
    }
    if (now == Mode::slow && !pause(std::chrono::milliseconds(60))) return false;
    if (now == Mode::ignore_range) ranged = false;
    if (!ranged) first = 0, last = size - 1;
    last = std::min<unsigned long long>(last, size - 1);
    if (now == Mode::wrong_range) first = first > 0 ? first - 1 : 1;
    std::vector<std::byte> body(file.begin() + first, file.begin() + last + 1);
    if (now == Mode::garbage) {
      for (std::byte& byte : body) byte ^= std::byte{0x5A};
    }
    if (now == Mode::too_long) body.resize(body.size() + 7);
    std::string text = ranged ? "HTTP/1.1 206 Partial\r\nContent-Range: bytes " +
                                    std::to_string(first) + "-" + std::to_string(last) + "/" +
                                    std::to_string(size) + "\r\n"
                              : "HTTP/1.1 200 OK\r\n";
    text += "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n";
    if (!send_all(socket, text.data(), text.size())) return false;
    if (now == Mode::stall || now == Mode::cut_off) {
      send_all(socket, body.data(), body.size() / 2);
      return now == Mode::stall && pause(std::chrono::hours(1));
    }
    if (now == Mode::drip) {
      for (const std::byte byte : body) {
        if (!send_all(socket, &byte, 1) || !pause(std::chrono::milliseconds(20))) return false;
      }
      return true;
    }
    return send_all(socket, body.data(), body.size());
  }

  void serve(int socket) {
    const int on = 1;
    ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    for (;;) {
      const std::string head = read_head(socket);
      if (head.empty()) break;
      ++requests;
      const unsigned now = ++at_once;
      unsigned most = most_at_once;
      while (now > most && !most_at_once.compare_exchange_weak(most, now)) {
      }
      const bool more = answer(socket, head);
      --at_once;
      if (!more) break;
    }
    ::close(socket);
  }

  void accept_all() {
    while (!stopping) {
      pollfd wait = {listener, POLLIN, 0};
      if (::poll(&wait, 1, 20) <= 0) continue;
      const int socket = ::accept(listener, nullptr, nullptr);
      if (socket < 0) continue;
      std::lock_guard lock(mutex);
      workers.emplace_back([this, socket] { serve(socket); });
    }
  }
};

TestHttpServer::TestHttpServer(std::vector<std::byte> file, Mode mode)
    : impl_(std::make_unique<Impl>()) {
  impl_->file = std::move(file);
  impl_->mode = mode;
  impl_->listener = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  if (::bind(impl_->listener, reinterpret_cast<sockaddr*>(&address), length) != 0 ||
      ::listen(impl_->listener, 64) != 0 ||
      ::getsockname(impl_->listener, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    std::perror("the test server could not listen on loopback");
  }
  impl_->port = ntohs(address.sin_port);
  impl_->acceptor = std::thread([this] { impl_->accept_all(); });
}

TestHttpServer::~TestHttpServer() {
  impl_->stopping = true;
  impl_->acceptor.join();
  for (std::thread& worker : impl_->workers) worker.join();
  ::close(impl_->listener);
}

std::string TestHttpServer::url() const {
  return "http://127.0.0.1:" + std::to_string(impl_->port) + "/tensor.ht";
}
unsigned TestHttpServer::requests() const { return impl_->requests; }
unsigned TestHttpServer::most_at_once() const { return impl_->most_at_once; }
void TestHttpServer::set_mode(Mode mode) { impl_->mode = mode; }

}  // namespace hologram::holotensor
