#include "cli/inspect/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

namespace hologram::cli {
namespace {

using nlohmann::ordered_json;

std::string string_of(const ordered_json& value) { return value.get<std::string>(); }

// Names of values differ at their ends.
std::string shortened(const std::string& name) {
  constexpr size_t kMost = 40;
  return name.size() <= kMost ? name : "..." + name.substr(name.size() - kMost + 3);
}

std::string value_names(const ordered_json& plan, const ordered_json& ids) {
  std::string text;
  for (const ordered_json& id : ids) {
    if (!text.empty()) text += ", ";
    text += id.is_null() ? "-" : shortened(string_of(plan["values"][id.get<size_t>()]["name"]));
  }
  return text;
}

void add_steps(const ordered_json& plan, std::string& text, const std::string& indent) {
  size_t number = 0;
  for (const ordered_json& step : plan["steps"]) {
    const ordered_json& outputs = step["outputs"];
    const bool typed = outputs.size() == 1 && !outputs[0].is_null();
    text += fmt::format(
        "{}{:>5}  {:<28} {} -> {}{}\n", indent, number++, string_of(step["kernel"]),
        value_names(plan, step["inputs"]), value_names(plan, outputs),
        typed ? ": " + string_of(plan["values"][outputs[0].get<size_t>()]["type"]) : "");
    if (step.contains("subplans"))
      for (const ordered_json& subplan : step["subplans"]) {
        text += fmt::format("{}       {}:\n", indent, string_of(subplan["name"]));
        add_steps(subplan["plan"], text, indent + "       ");
      }
  }
}

struct Kept {
  uint64_t offset, size;
  size_t first, last;
  std::string name;
};

// Values of the arena with the steps between which they hold something.
std::vector<Kept> memory_map(const ordered_json& plan) {
  std::map<size_t, Kept> kept;
  const auto touch = [&](const ordered_json& id, size_t step) {
    if (id.is_null()) return;
    size_t number = id.get<size_t>();
    while (plan["values"][number].contains("source")) number = plan["values"][number]["source"];
    const ordered_json& value = plan["values"][number];
    if (!value.contains("offset")) return;
    const auto [entry, fresh] =
        kept.try_emplace(number, Kept{value["offset"], value["size"], step, step, value["name"]});
    if (!fresh) entry->second.last = step;
  };
  const size_t count = plan["steps"].size();
  for (size_t s = 0; s < count; ++s) {
    for (const ordered_json& id : plan["steps"][s]["outputs"]) touch(id, s);
    for (const ordered_json& id : plan["steps"][s]["inputs"]) touch(id, s);
    if (plan["steps"][s].contains("captures"))
      for (const ordered_json& id : plan["steps"][s]["captures"]) touch(id, s);
  }
  for (const ordered_json& id : plan["outputs"]) touch(id, count ? count - 1 : 0);
  std::vector<Kept> sorted;
  for (auto& [id, entry] : kept) sorted.push_back(std::move(entry));
  std::stable_sort(sorted.begin(), sorted.end(), [](const Kept& a, const Kept& b) {
    return a.offset != b.offset ? a.offset < b.offset : a.first < b.first;
  });
  return sorted;
}

std::string dot_string(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + "\"";
}

}  // namespace

std::string readable_size(uint64_t bytes) {
  if (bytes < 1000) return fmt::format("{} B", bytes);
  const double size = static_cast<double>(bytes);
  if (size < 1e6) return fmt::format("{:.1f} kB", size / 1e3);
  if (size < 1e9) return fmt::format("{:.1f} MB", size / 1e6);
  return fmt::format("{:.2f} GB", size / 1e9);
}

std::string inspection_text(const ordered_json& document) {
  const ordered_json& plan = document["plan"];
  std::string text =
      fmt::format("{}: archive version {}, made by {}\n\nsections\n", string_of(document["file"]),
                  document["version"].get<int>(), string_of(document["producer"]));
  for (const ordered_json& section : document["sections"])
    text += fmt::format("  {:<12} at {:>12}  {:>12} bytes  {}\n", string_of(section["kind"]),
                        section["offset"].get<uint64_t>(), section["size"].get<uint64_t>(),
                        readable_size(section["size"]));
  for (const char* side : {"inputs", "outputs"}) {
    text += fmt::format("\n{}\n", side);
    for (const ordered_json& port : document[side])
      text += fmt::format("  {}: {}\n", string_of(port["name"]), string_of(port["type"]));
  }
  text += fmt::format("\nsteps ({})\n", plan["steps"].size());
  add_steps(plan, text, "");

  const ordered_json& constants = document["constants"];
  uint64_t bytes = 0;
  std::vector<size_t> order;
  for (const ordered_json& constant : constants) {
    bytes += constant["size"].get<uint64_t>();
    order.push_back(order.size());
  }
  constexpr size_t kShown = 20;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return constants[a]["size"].get<uint64_t>() > constants[b]["size"].get<uint64_t>();
  });
  text += fmt::format("\nconstants ({}, {})\n", constants.size(), readable_size(bytes));
  for (size_t i = 0; i < std::min(order.size(), kShown); ++i) {
    const ordered_json& constant = constants[order[i]];
    text += fmt::format("  {:>5}  {:<28} at {:>12}  {}\n", order[i], string_of(constant["type"]),
                        constant["offset"].get<uint64_t>(), readable_size(constant["size"]));
  }
  if (order.size() > kShown)
    text += fmt::format("  ... and {} smaller ones (all with --json)\n", order.size() - kShown);

  const std::vector<Kept> kept = memory_map(plan);
  text += fmt::format("\nmemory: an arena of {}", readable_size(plan["arena"]));
  std::set<size_t> pooled;
  for (const ordered_json& step : plan["steps"])
    for (const ordered_json& id : step["outputs"])
      if (!id.is_null()) {
        const ordered_json& value = plan["values"][id.get<size_t>()];
        if (value["storage"] == "pool" || value.contains("block")) pooled.insert(id.get<size_t>());
      }
  if (!pooled.empty())
    text += fmt::format(", and {} values placed when shapes are known", pooled.size());
  text += "\n";
  if (!kept.empty())
    text += fmt::format("  {:>12} {:>12}  {:>12}  {}\n", "offset", "size", "steps", "value");
  for (const Kept& entry : kept)
    text += fmt::format("  {:>12} {:>12}  {:>12}  {}\n", entry.offset, entry.size,
                        fmt::format("{}..{}", entry.first, entry.last), entry.name);
  return text;
}

std::string inspection_dot(const ordered_json& document) {
  const ordered_json& plan = document["plan"];
  std::string text = fmt::format(
      "digraph {} {{\n  rankdir=TB;\n  node [shape=box, style=rounded, fontname=\"sans-serif\"];\n"
      "  edge [fontname=\"sans-serif\", fontsize=10];\n",
      dot_string(string_of(document["file"])));
  std::map<size_t, std::string> maker;
  for (const ordered_json& id : plan["inputs"]) {
    const ordered_json& value = plan["values"][id.get<size_t>()];
    maker[id.get<size_t>()] = fmt::format("i{}", id.get<size_t>());
    text += fmt::format("  i{} [label={}, shape=ellipse];\n", id.get<size_t>(),
                        dot_string(string_of(value["name"]) + "\n" + string_of(value["type"])));
  }
  const auto edge = [&](const ordered_json& id, const std::string& to) {
    if (id.is_null()) return;
    const auto from = maker.find(id.get<size_t>());
    if (from == maker.end()) return;  // a constant
    text += fmt::format("  {} -> {} [label={}];\n", from->second, to,
                        dot_string(string_of(plan["values"][id.get<size_t>()]["type"])));
  };
  size_t number = 0;
  for (const ordered_json& step : plan["steps"]) {
    const std::string name = fmt::format("s{}", number++);
    text += fmt::format("  {} [label={}];\n", name, dot_string(string_of(step["kernel"])));
    for (const ordered_json& id : step["inputs"]) edge(id, name);
    if (step.contains("captures"))
      for (const ordered_json& id : step["captures"]) edge(id, name);
    for (const ordered_json& id : step["outputs"])
      if (!id.is_null()) maker[id.get<size_t>()] = name;
  }
  number = 0;
  for (const ordered_json& id : plan["outputs"]) {
    const std::string name = fmt::format("o{}", number);
    text += fmt::format("  {} [label={}, shape=ellipse];\n", name,
                        dot_string(string_of(document["outputs"][number++]["name"])));
    edge(id, name);
  }
  return text + "}\n";
}

}  // namespace hologram::cli
