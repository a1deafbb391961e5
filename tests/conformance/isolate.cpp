#include "isolate.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace hologram::conformance {
namespace {

// One result on the pipe: outcome, length, reason.
struct Message {
  uint32_t outcome, length;
};

void write_all(int fd, const void* data, size_t size) {
  for (const char* at = static_cast<const char*>(data); size > 0;) {
    const ssize_t n = ::write(fd, at, size);
    if (n <= 0) _exit(3);
    at += n;
    size -= static_cast<size_t>(n);
  }
}

struct Child {
  size_t next, end;  // cases still to do
  pid_t pid = -1;
  int fd = -1;
  std::string pending;
};

void start(Child& child, std::span<const std::filesystem::path> cases, unsigned seconds_each) {
  int ends[2];
  if (pipe(ends) != 0) std::abort();
  child.pid = fork();
  if (child.pid == 0) {
    close(ends[0]);
    for (size_t i = child.next; i < child.end; ++i) {
      alarm(seconds_each);
      const CaseResult result = run_case(cases[i]);
      const Message message{static_cast<uint32_t>(result.outcome),
                            static_cast<uint32_t>(result.reason.size())};
      write_all(ends[1], &message, sizeof(message));
      write_all(ends[1], result.reason.data(), result.reason.size());
    }
    _exit(0);
  }
  close(ends[1]);
  child.fd = ends[0];
  child.pending.clear();
}

}  // namespace

void run_isolated(std::span<const std::filesystem::path> cases, unsigned jobs,
                  unsigned seconds_each, const std::function<void(size_t, CaseResult)>& done) {
  jobs = std::max(1u, jobs);
  std::vector<Child> children;
  for (unsigned j = 0; j < jobs; ++j) {
    Child child{cases.size() * j / jobs, cases.size() * (j + 1) / jobs};
    if (child.next == child.end) continue;
    children.push_back(child);
  }
  for (Child& child : children) start(child, cases, seconds_each);
  while (!children.empty()) {
    std::vector<pollfd> polls;
    for (const Child& child : children) polls.push_back({child.fd, POLLIN, 0});
    poll(polls.data(), polls.size(), -1);
    for (size_t k = 0; k < polls.size(); ++k) {
      if (!polls[k].revents) continue;
      Child& child = children[k];
      char buffer[65536];
      const ssize_t n = read(child.fd, buffer, sizeof(buffer));
      if (n > 0) {
        child.pending.append(buffer, static_cast<size_t>(n));
        Message message;
        while (child.pending.size() >= sizeof(message)) {
          std::memcpy(&message, child.pending.data(), sizeof(message));
          if (child.pending.size() < sizeof(message) + message.length) break;
          done(child.next,
               {cases[child.next].filename().string(), static_cast<Outcome>(message.outcome),
                child.pending.substr(sizeof(message), message.length)});
          ++child.next;
          child.pending.erase(0, sizeof(message) + message.length);
        }
        continue;
      }
      close(child.fd);
      child.fd = -1;
      int status = 0;
      waitpid(child.pid, &status, 0);
      if (child.next < child.end) {
        const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
        done(child.next, {cases[child.next].filename().string(), Outcome::failed,
                          signal == SIGALRM ? "timed out"
                          : signal          ? "crashed: " + std::string(strsignal(signal))
                                            : "exited " + std::to_string(WEXITSTATUS(status))});
        if (++child.next < child.end) start(child, cases, seconds_each);
      }
    }
    std::erase_if(children, [](const Child& c) { return c.fd < 0; });
  }
}

}  // namespace hologram::conformance
