// Speech to text: Moonshine tiny, compiled into two archives, listens to a .wav file.
//
//   example_speech ENCODER.holo DECODER.holo llama-tokenizer.js SPEECH.wav
#include <algorithm>
#include <cstdio>
#include <map>
#include <string>

#include "runtime/session/session.h"
#include "tokenizer.h"
#include "wav.h"

namespace {

using hologram::Result;
using hologram::Status;
using hologram::kernels::Tensor;
using hologram::kernels::Value;
using hologram::runtime::Session;

constexpr int64_t kBeginToken = 1, kEndToken = 2;

// One run, with inputs and outputs by name.
Result<std::map<std::string, Value>> run(const Session& session,
                                         const std::map<std::string, Value>& inputs) {
  std::vector<Value> ordered;
  for (const auto& port : session.inputs()) {
    const auto found = inputs.find(port.name);
    if (found == inputs.end())
      return hologram::fail(hologram::ErrorCode::not_found, "no value for input '{}'", port.name);
    ordered.push_back(found->second);
  }
  HOLOGRAM_TRY(std::vector<Value> results, session.run(ordered));
  std::map<std::string, Value> named;
  for (size_t i = 0; i < results.size(); ++i)
    named[session.outputs()[i].name] = std::move(results[i]);
  return named;
}

int64_t most_likely(const Tensor& logits) {
  const std::span<const float> values = logits.span<float>();
  return std::max_element(values.begin(), values.end()) - values.begin();
}

Result<std::vector<int64_t>> transcribe(const Session& encoder, const Session& decoder,
                                        std::span<const float> samples) {
  const auto length = static_cast<int64_t>(samples.size());
  HOLOGRAM_TRY(const Tensor sound, Tensor::from<float>({1, length}, samples));
  HOLOGRAM_TRY(auto encoded, run(encoder, {{"input_values", sound}}));

  // The decoder reads what it computed for earlier tokens; at first there are none.
  std::map<std::string, Value> state;
  state["encoder_hidden_states"] = encoded.at("last_hidden_state");
  HOLOGRAM_TRY(const Tensor nothing, Tensor::allocate(hologram::DType::f32, {1, 8, 0, 36}));
  for (const auto& port : decoder.inputs())
    if (port.name.starts_with("past_key_values.")) state[port.name] = nothing;

  std::vector<int64_t> tokens{kBeginToken};
  const int64_t most = length * 6 / 16000;  // nobody says more than six tokens a second
  for (int64_t i = 0; i < most && (i == 0 || tokens.back() != kEndToken); ++i) {
    const auto cached = static_cast<uint8_t>(i > 0);
    HOLOGRAM_TRY(state["input_ids"], Tensor::from<int64_t>({1, 1}, {&tokens.back(), 1}));
    HOLOGRAM_TRY(Tensor branch, Tensor::allocate(hologram::DType::boolean, {1}));
    *branch.as<uint8_t>() = cached;
    state["use_cache_branch"] = branch;
    HOLOGRAM_TRY(auto results, run(decoder, state));
    tokens.push_back(most_likely(results.at("logits").tensor));
    // Keys and values of the sound are computed once, those of the words grow.
    for (auto& [name, value] : results)
      if (name.starts_with("present.") && (i == 0 || name.find(".decoder.") != std::string::npos))
        state["past_key_values." + name.substr(8)] = std::move(value);
  }
  return tokens;
}

Status speak(char** arguments) {
  HOLOGRAM_TRY(const Session encoder, Session::open(arguments[1]));
  HOLOGRAM_TRY(const Session decoder, Session::open(arguments[2]));
  HOLOGRAM_TRY(const speech::Tokenizer tokenizer, speech::Tokenizer::open(arguments[3]));
  HOLOGRAM_TRY(const std::vector<float> samples, speech::read_wav(arguments[4]));
  HOLOGRAM_TRY(const std::vector<int64_t> tokens, transcribe(encoder, decoder, samples));
  std::printf("%s\n", tokenizer.decode(tokens).c_str());
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: %s ENCODER.holo DECODER.holo llama-tokenizer.js SPEECH.wav\n",
                 argv[0]);
    return 2;
  }
  const Status status = speak(argv);
  if (!status) std::fprintf(stderr, "error: %s\n", status.error().to_string().c_str());
  return status ? 0 : 2;
}
