#include "bench/compare/child.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace hologram::compare {

using nlohmann::json;

namespace {

// Runs `body`, which does not return, in a child; what it writes to the file it is given is JSON.
json answer_of(int threads, FunctionRef<void(int)> body) {
  int ends[2];
  if (pipe(ends) != 0) return json{{"error", "no pipe"}};
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    setenv("HOLOGRAM_NUM_THREADS", std::to_string(threads).c_str(), 1);
    body(ends[1]);
    _exit(1);
  }
  close(ends[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t got; (got = read(ends[0], buffer, sizeof(buffer))) > 0;)
    text.append(buffer, static_cast<size_t>(got));
  close(ends[0]);
  waitpid(child, nullptr, 0);
  json result = json::parse(text, nullptr, false);
  return result.is_discarded() ? json{{"error", "the process died"}} : result;
}

}  // namespace

json in_child(int threads, FunctionRef<json()> body) {
  return answer_of(threads, [&](int file) {
    const std::string text = body().dump();
    size_t done = 0;
    while (done < text.size()) {
      const ssize_t written = write(file, text.data() + done, text.size() - done);
      if (written <= 0) break;
      done += static_cast<size_t>(written);
    }
    _exit(0);
  });
}

json in_program(int threads, const std::filesystem::path& program, const std::string& argument) {
  return answer_of(threads, [&](int file) {
    dup2(file, STDOUT_FILENO);
    execl(program.c_str(), program.c_str(), argument.c_str(), static_cast<char*>(nullptr));
  });
}

}  // namespace hologram::compare
