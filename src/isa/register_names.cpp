#include "isa/register_names.h"

#include <algorithm>
#include <charconv>

namespace hologram::isa {

Result<Register> RegisterNames::find(const Token& token) {
  const auto [found, inserted] =
      by_name_.try_emplace(token.text, static_cast<uint32_t>(entries_.size()));
  if (!inserted) return Register{found->second};
  Entry entry{.token = token};
  if (token.text.find_first_not_of("0123456789") == std::string_view::npos) {
    uint32_t number = 0;
    const char* const end = token.text.data() + token.text.size();
    const auto [stopped, error] = std::from_chars(token.text.data(), end, number);
    if (error != std::errc{} || stopped != end || number >= kMaxRegisters)
      return fail_at(token, "register numbers go from 0 to {}, found %{}", kMaxRegisters - 1,
                     token.text);
    if (token.text.size() > 1 && token.text[0] == '0')
      return fail_at(token, "register numbers have no leading zeros, found %{}", token.text);
    entry.number = number;
  }
  entries_.push_back(std::move(entry));
  return Register{found->second};
}

Register RegisterNames::unnamed(DType type) {
  entries_.push_back({.token = {}, .type = type});
  return {static_cast<uint32_t>(entries_.size() - 1)};
}

Status RegisterNames::resolve(Program& program) {
  uint32_t numbered = 0;
  const Entry* highest = nullptr;
  for (const Entry& entry : entries_) {
    if (!entry.number || *entry.number < numbered) continue;
    numbered = *entry.number + 1;
    highest = &entry;
  }
  std::vector<uint32_t> place(entries_.size());
  std::vector<bool> taken(numbered);
  uint32_t next = numbered;
  for (size_t i = 0; i < entries_.size(); ++i) {
    place[i] = entries_[i].number ? *entries_[i].number : next++;
    if (entries_[i].number) taken[place[i]] = true;
  }
  for (uint32_t number = 0; number < numbered; ++number)
    if (!taken[number])
      return fail_at(highest->token,
                     "there is %{} but no %{}: number registers without gaps, or declare it as "
                     "'register %{}: type'",
                     numbered - 1, number, number);

  program.registers.resize(next);
  spelling_.resize(next);
  for (size_t i = 0; i < entries_.size(); ++i) {
    program.registers[place[i]] = *entries_[i].type;
    spelling_[place[i]] = entries_[i].token.text;
  }
  for (Instruction& instruction : program.body)
    for (Register* r : {&instruction.dst, &instruction.a, &instruction.b, &instruction.c})
      if (r->valid()) r->index = place[r->index];
  return {};
}

std::string RegisterNames::with_names(std::string_view message) const {
  std::string result;
  while (!message.empty()) {
    const size_t percent = std::min(message.find('%'), message.size());
    result += message.substr(0, percent);
    message.remove_prefix(percent);
    if (message.empty()) break;
    uint32_t place = 0;
    const auto [stopped, error] =
        std::from_chars(message.data() + 1, message.data() + message.size(), place);
    const bool named =
        error == std::errc{} && place < spelling_.size() && !spelling_[place].empty();
    const size_t length = named ? stopped - message.data() : 1;
    result += '%';
    if (named) result += spelling_[place];
    message.remove_prefix(length);
  }
  return result;
}

}  // namespace hologram::isa
