#include "holotensor/source/http_source.h"

#include <curl/curl.h>

#include <algorithm>
#include <charconv>
#include <list>
#include <mutex>
#include <optional>
#include <string_view>

namespace hologram::holotensor {
namespace {

using Clock = MirrorList::Clock;

struct EasyDeleter {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};
struct MultiDeleter {
  void operator()(CURLM* multi) const { curl_multi_cleanup(multi); }
};

std::optional<uint64_t> parse_number(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() <= ' ')) text.remove_suffix(1);
  return text;
}

// "bytes 0-99/1234" -> first byte and whole size.
struct ContentRange {
  uint64_t first = 0;
  std::optional<uint64_t> total;  // "*": not told
};
std::optional<ContentRange> parse_content_range(std::string_view text) {
  text = trimmed(text);
  if (!text.starts_with("bytes ")) return std::nullopt;
  text.remove_prefix(6);
  const size_t dash = text.find('-'), slash = text.find('/');
  if (dash == text.npos || slash == text.npos || slash < dash) return std::nullopt;
  const auto first = parse_number(text.substr(0, dash));
  if (!first) return std::nullopt;
  return ContentRange{*first, parse_number(text.substr(slash + 1))};
}

bool same_ignoring_case(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) {
    const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; };
    return lower(x) == lower(y);
  });
}

// A range still to be had.
struct Job {
  size_t index = 0;
  ByteRange range;
  unsigned attempts = 0;
  Clock::time_point not_before = {};
  std::vector<size_t> failed_mirrors;
  std::string last_error;
};

// One transfer of a job from a mirror. Lives at a fixed address while libcurl knows it.
struct Request {
  Job job;
  size_t mirror = 0;
  std::unique_ptr<CURL, EasyDeleter> easy;
  const HttpOptions* options = nullptr;
  const CancelToken* cancel = nullptr;
  Bytes body;
  uint64_t to_skip = 0;  // a server that ignored Range sends the file from its beginning
  bool body_begun = false;
  bool complete = false;
  std::string error;  // ours; libcurl's own is used when this is empty
  std::optional<ContentRange> content_range;
  std::optional<uint64_t> content_length;
  Clock::time_point started;
  // The stall window: how much had come when it began.
  Clock::time_point window_began;
  curl_off_t window_bytes = 0;
};

long status_of(const Request& request) {
  long status = 0;
  curl_easy_getinfo(request.easy.get(), CURLINFO_RESPONSE_CODE, &status);
  return status;
}

size_t on_header(char* data, size_t, size_t size, void* user) {
  auto& request = *static_cast<Request*>(user);
  const std::string_view line(data, size);
  if (line.starts_with("HTTP/")) {  // a redirect's headers do not describe the file
    request.content_range.reset();
    request.content_length.reset();
  }
  const size_t colon = line.find(':');
  if (colon == line.npos) return size;
  const std::string_view key = line.substr(0, colon), value = line.substr(colon + 1);
  if (same_ignoring_case(key, "content-range")) request.content_range = parse_content_range(value);
  if (same_ignoring_case(key, "content-length")) {
    request.content_length = parse_number(trimmed(value));
  }
  return size;
}

// Decides, at the first byte of the body, whether the answer is the range that was asked for.
bool accept_body(Request& request) {
  const long status = status_of(request);
  const uint64_t offset = request.job.range.offset;
  if (status == 206) {
    if (!request.content_range || request.content_range->first != offset) {
      request.error = "answered with another range than asked for";
    }
  } else if (status == 200) {
    if (offset > request.options->skip_limit) {
      request.error =
          fmt::format("ignores Range, and byte {} is too far into the file to skip to", offset);
    }
    request.to_skip = offset;
  } else {
    request.error = fmt::format("answered with status {}", status);
  }
  return request.error.empty();
}

size_t on_body(char* data, size_t, size_t size, void* user) {
  auto& request = *static_cast<Request*>(user);
  if (!request.body_begun) {
    request.body_begun = true;
    if (!accept_body(request)) return CURL_WRITEFUNC_ERROR;
  }
  const size_t skipped = std::min<uint64_t>(size, request.to_skip);
  request.to_skip -= skipped;
  const auto* bytes = reinterpret_cast<const std::byte*>(data) + skipped;
  const uint64_t missing = request.job.range.size - request.body.size();
  const size_t used = std::min<uint64_t>(size - skipped, missing);
  request.body.insert(request.body.end(), bytes, bytes + used);
  request.complete = request.body.size() == request.job.range.size;
  if (request.complete && used < size - skipped) {
    // More than asked for. From a server that ignores Range that is the rest of the file, and we
    // hang up; a 206 that is too long is a mirror that cannot be believed.
    if (status_of(request) == 206) {
      request.complete = false;
      request.error = "sent more bytes than asked for";
    }
    return CURL_WRITEFUNC_ERROR;
  }
  return size;
}

int on_progress(void* user, curl_off_t, curl_off_t received, curl_off_t, curl_off_t) {
  auto& request = *static_cast<Request*>(user);
  if (request.cancel->cancelled()) return 1;
  const auto now = Clock::now();
  if (now - request.window_began < request.options->stall_timeout) return 0;
  const double seconds = std::chrono::duration<double>(now - request.window_began).count();
  const double needed = seconds * static_cast<double>(request.options->minimum_bytes_per_second);
  if (static_cast<double>(received - request.window_bytes) < needed) {
    request.error =
        fmt::format("stalled: {} bytes in {:.1f} s", received - request.window_bytes, seconds);
    return 1;
  }
  request.window_began = now;
  request.window_bytes = received;
  return 0;
}

}  // namespace

struct HttpByteSource::Impl {
  Impl(std::vector<Mirror> list, HttpOptions given)
      : options(given), mirrors(std::move(list), given.mirror_cool_off) {}

  HttpOptions options;
  MirrorList mirrors;
  std::unique_ptr<CURLM, MultiDeleter> multi;  // keeps connections open between reads
  std::optional<uint64_t> file_size;

  bool start(Request& request, const CancelToken& cancel) {
    request.easy.reset(curl_easy_init());
    if (!request.easy) return false;
    CURL* easy = request.easy.get();
    request.options = &options;
    request.cancel = &cancel;
    request.started = request.window_began = Clock::now();
    // A range may come from a header that lies: beyond a little, memory follows what arrives.
    request.body.reserve(std::min<uint64_t>(request.job.range.size, 1 << 20));
    const std::string range = fmt::format("{}-{}", request.job.range.offset,
                                          request.job.range.offset + request.job.range.size - 1);
    curl_easy_setopt(easy, CURLOPT_URL, mirrors.url(request.mirror).c_str());
    curl_easy_setopt(easy, CURLOPT_RANGE, range.c_str());
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 1L);
    curl_easy_setopt(easy, CURLOPT_MAXREDIRS, 5L);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "hologram");
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, long{options.connect_timeout.count()});
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, long{options.request_timeout.count()});
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, &request);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, &request);
    curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl_easy_setopt(easy, CURLOPT_XFERINFODATA, &request);
    curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(easy, CURLOPT_PRIVATE, &request);
    return curl_multi_add_handle(multi.get(), easy) == CURLM_OK;
  }

  // What is wrong with a finished transfer; empty when the bytes are good.
  std::string judge(const Request& request, CURLcode code) {
    if (!request.error.empty()) return request.error;
    if (!request.complete) {
      if (code != CURLE_OK) return curl_easy_strerror(code);
      const long status = status_of(request);
      if (status != 206 && status != 200) return fmt::format("answered with status {}", status);
      return fmt::format("sent {} of {} bytes", request.body.size(), request.job.range.size);
    }
    const auto total = total_of(request);
    if (!request.job.range.check && total && file_size && *total != *file_size) {
      return fmt::format("its file has {} bytes and not {}", *total, *file_size);
    }
    if (const Status good = check_bytes(request.job.range, request.body); !good) {
      return good.error().message();
    }
    return {};
  }

  static std::optional<uint64_t> total_of(const Request& request) {
    if (request.content_range) return request.content_range->total;
    if (status_of(request) == 200) return request.content_length;
    return std::nullopt;
  }

  // Runs the jobs to their end. `finish` gets each job's bytes or last error.
  Status run(std::list<Job> waiting, const CancelToken& cancel,
             FunctionRef<void(size_t, Result<Bytes>, std::optional<uint64_t>)> finish) {
    std::list<Request> active;
    // What the caller does with a delivery holds this thread up: no mirror is to blame for it.
    const auto deliver = [&](size_t index, Result<Bytes> bytes, std::optional<uint64_t> total) {
      const auto began = Clock::now();
      finish(index, std::move(bytes), total);
      const auto held_up = Clock::now() - began;
      for (Request& request : active) {
        request.started += held_up;
        request.window_began += held_up;
      }
    };
    const auto drop_all = [&] {
      for (Request& request : active) {
        curl_multi_remove_handle(multi.get(), request.easy.get());
        mirrors.abandoned(request.mirror);
      }
    };
    const auto failed = [&](Job job, size_t mirror, std::string error) {
      job.last_error = fmt::format("{}: {}", mirrors.url(mirror), error);
      mirrors.failed(mirror, Clock::now(), std::move(error));
      job.failed_mirrors.push_back(mirror);
      // Once every mirror has failed a range, all may be asked again.
      if (job.failed_mirrors.size() >= mirrors.size()) job.failed_mirrors.clear();
      if (++job.attempts >= options.attempts) {
        finish(
            job.index,
            fail(ErrorCode::io_error, "bytes {} to {} could not be had in {} attempts; last: {}",
                 job.range.offset, job.range.offset + job.range.size, job.attempts, job.last_error),
            std::nullopt);
        return;
      }
      const unsigned doublings = std::min(job.attempts - 1, 6u);
      job.not_before = Clock::now() + options.retry_delay * (1u << doublings);
      waiting.push_back(std::move(job));
    };

    while (!waiting.empty() || !active.empty()) {
      if (cancel.cancelled()) {
        drop_all();
        return cancel.check();
      }
      const auto now = Clock::now();
      for (auto job = waiting.begin(); job != waiting.end() && active.size() < options.parallel;) {
        if (job->not_before > now) {
          ++job;
          continue;
        }
        Request& request = active.emplace_back();
        request.job = std::move(*job);
        job = waiting.erase(job);
        request.mirror = mirrors.choose(now, request.job.failed_mirrors);
        mirrors.started(request.mirror);
        if (!start(request, cancel)) {
          active.pop_back();
          drop_all();
          return fail(ErrorCode::resource_exhausted, "libcurl could not start a transfer");
        }
      }
      int running = 0;
      curl_multi_perform(multi.get(), &running);
      int left = 0;
      while (CURLMsg* message = curl_multi_info_read(multi.get(), &left)) {
        if (message->msg != CURLMSG_DONE) continue;
        const CURLcode code = message->data.result;
        Request* request = nullptr;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &request);
        std::string error = cancel.cancelled() ? "cancelled" : judge(*request, code);
        const auto total = total_of(*request);
        curl_multi_remove_handle(multi.get(), request->easy.get());
        const auto self =
            std::ranges::find_if(active, [&](const Request& other) { return &other == request; });
        if (error.empty()) {
          mirrors.succeeded(request->mirror, request->body.size(), Clock::now() - request->started);
          const size_t index = request->job.index;
          Bytes body = std::move(request->body);
          active.erase(self);
          deliver(index, std::move(body), total);
        } else if (cancel.cancelled()) {
          mirrors.abandoned(request->mirror);
          active.erase(self);
        } else {
          Job job = std::move(request->job);
          const size_t mirror = request->mirror;
          active.erase(self);
          failed(std::move(job), mirror, std::move(error));
        }
      }
      // Short, so that cancelling, stall limits and retry delays are noticed in time.
      if (!active.empty() || !waiting.empty()) {
        curl_multi_poll(multi.get(), nullptr, 0, 20, nullptr);
      }
    }
    return {};
  }

  // The first byte: its Content-Range tells the size.
  Result<uint64_t> probe_size(const CancelToken& cancel) {
    if (file_size) return *file_size;
    Result<uint64_t> size = fail(ErrorCode::internal, "no answer");
    HOLOGRAM_CHECK(run({Job{.range = {0, 1}}}, cancel,
                       [&](size_t, Result<Bytes> bytes, std::optional<uint64_t> total) {
                         if (!bytes) {
                           size = std::unexpected(bytes.error());
                         } else if (!total) {
                           size =
                               fail(ErrorCode::unsupported,
                                    "{}: the server does not tell the file's size", mirrors.url(0));
                         } else {
                           size = *total;
                         }
                       }));
    if (size) file_size = *size;
    return size;
  }
};

HttpByteSource::HttpByteSource(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpByteSource::~HttpByteSource() = default;

Result<std::unique_ptr<HttpByteSource>> HttpByteSource::create(std::vector<Mirror> mirrors,
                                                               HttpOptions options) {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
  if (mirrors.empty()) return fail(ErrorCode::invalid_argument, "no mirror was given");
  for (const Mirror& mirror : mirrors) {
    if (!mirror.url.starts_with("http://") && !mirror.url.starts_with("https://")) {
      return fail(ErrorCode::invalid_argument,
                  "'{}' is not an address of the form http://... or https://...", mirror.url);
    }
  }
  if (options.parallel == 0 || options.attempts == 0) {
    return fail(ErrorCode::invalid_argument, "parallel and attempts must be at least 1");
  }
  auto impl = std::make_unique<Impl>(std::move(mirrors), options);
  impl->multi.reset(curl_multi_init());
  if (!impl->multi) return fail(ErrorCode::resource_exhausted, "libcurl could not start");
  return std::unique_ptr<HttpByteSource>(new HttpByteSource(std::move(impl)));
}

std::string HttpByteSource::name() const { return impl_->mirrors.url(0); }

Result<uint64_t> HttpByteSource::size() { return impl_->probe_size(CancelToken()); }

Status HttpByteSource::read(std::span<const ByteRange> ranges, const CancelToken& cancel,
                            DeliverRange deliver) {
  std::list<Job> jobs;
  for (size_t i = 0; i < ranges.size(); ++i) {
    HOLOGRAM_CHECK(cancel.check());
    if (ranges[i].offset > UINT64_MAX - ranges[i].size) {
      deliver(i, fail(ErrorCode::out_of_range, "{} bytes at {} end past every file", ranges[i].size,
                      ranges[i].offset));
      continue;
    }
    if (!ranges[i].check) {
      const Result<uint64_t> size = impl_->probe_size(cancel);
      HOLOGRAM_CHECK(cancel.check());
      const Status inside = size ? check_range(ranges[i], *size) : std::unexpected(size.error());
      if (!inside) {
        deliver(i, fail(inside.error(), name()));
        continue;
      }
    }
    if (ranges[i].size == 0) {
      deliver(i, Bytes());
    } else {
      jobs.push_back(Job{.index = i, .range = ranges[i]});
    }
  }
  return impl_->run(std::move(jobs), cancel,
                    [&](size_t index, Result<Bytes> bytes, std::optional<uint64_t>) {
                      deliver(index, std::move(bytes));
                    });
}

std::vector<MirrorStats> HttpByteSource::mirror_stats() const { return impl_->mirrors.stats(); }

}  // namespace hologram::holotensor
