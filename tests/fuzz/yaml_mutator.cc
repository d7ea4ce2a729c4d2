#include "tests/fuzz/yaml_mutator.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <random>
#include <utility>
#include <vector>

#include "sim/read/guarded_yaml.h"

namespace pipesim::fuzz {
namespace {

std::vector<std::string>& words() {
  static std::vector<std::string> all;
  return all;
}

// Numbers and quantities at the edges of what readers take.
constexpr std::array kEdges{"0",
                            "-1",
                            "1",
                            "2",
                            "3",
                            "1e308",
                            "1e-308",
                            "65536",
                            "1048576",
                            "2147483648",
                            "9223372036854775807",
                            "0.5",
                            "nan",
                            "inf",
                            "~",
                            "true",
                            "[]",
                            "{}",
                            "''",
                            "1 us",
                            "0 s",
                            "1e300 s",
                            "1 GiB",
                            "0 B",
                            "1e30 GiB",
                            "400 Gbps",
                            "16M",
                            "1 TFLOP/s",
                            "-0"};

struct Tree {
  enum class Kind : char { kScalar, kList, kMap };
  Kind kind = Kind::kScalar;
  std::string text = {};               // of a scalar, as YAML writes it
  std::vector<std::string> keys = {};  // of a map, one each of the children
  std::vector<Tree> children = {};
};

std::string written(const YAML::Node& scalar) {
  const std::string& text = scalar.Scalar();
  const bool plain = scalar.Tag() != "!" && !text.empty() &&
                     text.find_first_of("{}[],:#&*!|>'\"%@`\n\r\t\\") == std::string::npos &&
                     text.front() != ' ' && text.back() != ' ' && text.front() != '-' &&
                     text.front() != '?';
  if (plain) return text;
  std::string quoted = "\"";
  for (const char each : text) {
    if (each == '"' || each == '\\') quoted += '\\';
    quoted += each == '\n' ? std::string("\\n") : std::string(1, each);
  }
  return quoted + '"';
}

Tree tree_of(const YAML::Node& node) {
  Tree tree;
  if (node.IsMap()) {
    tree.kind = Tree::Kind::kMap;
    for (const auto& each : node) {
      tree.keys.push_back(each.first.IsScalar() ? written(each.first) : "key");
      tree.children.push_back(tree_of(each.second));
    }
  } else if (node.IsSequence()) {
    tree.kind = Tree::Kind::kList;
    for (const auto& each : node) tree.children.push_back(tree_of(each));
  } else {
    tree.text = node.IsScalar() ? written(node) : "~";
  }
  return tree;
}

void write_flow(const Tree& tree, std::string& out) {
  if (tree.kind == Tree::Kind::kScalar) {
    out += tree.text;
    return;
  }
  const bool map = tree.kind == Tree::Kind::kMap;
  out += map ? '{' : '[';
  for (size_t i = 0; i < tree.children.size(); ++i) {
    if (i > 0) out += ", ";
    if (map) out += tree.keys[i] + ": ";
    write_flow(tree.children[i], out);
  }
  out += map ? '}' : ']';
}

// The outermost keys and entries on lines of their own.
std::string written(const Tree& tree) {
  std::string out;
  for (size_t i = 0; i < tree.children.size(); ++i) {
    out += tree.kind == Tree::Kind::kMap ? tree.keys[i] + ": " : "- ";
    write_flow(tree.children[i], out);
    out += '\n';
  }
  return out.empty() ? (tree.kind == Tree::Kind::kMap ? "{}" : "[]") : out;
}

class Mutator {
 public:
  explicit Mutator(unsigned seed) : random_(seed) {}

  void operator()(Tree& root) {
    std::vector<Tree*> all;
    collect(root, all);
    Tree& at = *all[below(all.size())];
    if (at.children.empty()) {
      replace(at, all);
      return;
    }
    const size_t child = below(at.children.size());
    switch (below(6)) {
      case 0:
        remove(at, child);
        break;
      case 1:
        repeat(at, child);
        break;
      case 2:
        rename(at, child);
        break;
      case 3:
        std::swap(at.children[child], at.children[below(at.children.size())]);
        break;
      case 4:
        insert(at, child, *all[below(all.size())]);
        break;
      default:
        replace(at.children[child], all);
    }
  }

  size_t below(size_t bound) { return random_() % bound; }

 private:
  static void collect(Tree& tree, std::vector<Tree*>& all) {
    all.push_back(&tree);
    for (Tree& each : tree.children) collect(each, all);
  }

  std::string word() {
    if (words().empty() || below(3) == 0) return kEdges[below(kEdges.size())];
    return words()[below(words().size())];
  }

  static void remove(Tree& at, size_t child) {
    at.children.erase(at.children.begin() + static_cast<long>(child));
    if (at.kind == Tree::Kind::kMap) at.keys.erase(at.keys.begin() + static_cast<long>(child));
  }

  static void repeat(Tree& at, size_t child) {
    Tree copy = at.children[child];
    at.children.push_back(std::move(copy));
    if (at.kind == Tree::Kind::kMap) at.keys.emplace_back(at.keys[child]);
  }

  void rename(Tree& at, size_t child) {
    if (at.kind == Tree::Kind::kMap) at.keys[child] = word();
  }

  void insert(Tree& at, size_t child, const Tree& other) {
    Tree copy = below(2) == 0 ? Tree{.text = word()} : other;
    at.children.insert(at.children.begin() + static_cast<long>(child), std::move(copy));
    if (at.kind == Tree::Kind::kMap) {
      at.keys.insert(at.keys.begin() + static_cast<long>(child), word());
    }
  }

  // By a word, by a list of itself, by what stands elsewhere.
  void replace(Tree& at, const std::vector<Tree*>& all) {
    switch (below(4)) {
      case 0: {
        Tree list{.kind = Tree::Kind::kList};
        list.children.push_back(at);
        at = std::move(list);
        break;
      }
      case 1: {
        Tree copy = *all[below(all.size())];
        at = std::move(copy);
        break;
      }
      default:
        at = Tree{.text = word()};
    }
  }

  std::minstd_rand random_;
};

}  // namespace

void read_words(const std::string& path) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.size() > 2 && line.front() == '"') words().push_back(line.substr(1, line.size() - 2));
  }
}

std::string mutated(const std::string& text, unsigned seed) {
  const std::string first = text.starts_with('#') ? text.substr(0, text.find('\n')) + '\n' : "";
  try {
    const YAML::Node node = load_yaml(text, [](const YAML::Mark& /*mark*/) { return Location{}; });
    if (!node.IsMap() && !node.IsSequence()) return "";
    Tree tree = tree_of(node);
    Mutator mutate(seed / 2);
    for (size_t left = 1 + mutate.below(4); left > 0; --left) mutate(tree);
    return first + written(tree);
  } catch (const InputError&) {
    return "";
  }
}

}  // namespace pipesim::fuzz
