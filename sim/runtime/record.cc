#include <cstring>
#include <type_traits>

#include "sim/core/error.h"
#include "sim/runtime/board.h"

namespace pipesim::runtime {
namespace {

template <class T>
void put(std::string& bytes, const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}
template <class T>
void put(std::string& bytes, const std::vector<T>& values) {
  put(bytes, values.size());
  bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

class Reader {
 public:
  explicit Reader(std::span<const char> bytes) : left_(bytes) {}

  template <class T>
  void get(T& value) {
    take(&value, sizeof value);
  }
  template <class T>
  void get(std::vector<T>& values) {
    std::size_t size = 0;
    get(size);
    if (size > left_.size()) throw LogicError("a record ends early");
    values.resize(size);
    take(values.data(), size * sizeof(T));
  }

 private:
  void take(void* to, std::size_t size) {
    if (size > left_.size()) throw LogicError("a record ends early");
    if (size > 0) std::memcpy(to, left_.data(), size);
    left_ = left_.subspan(size);
  }
  std::span<const char> left_;
};

}  // namespace

std::string to_bytes(const DeviceRecord& record) {
  std::string bytes;
  for (const auto& lane : record.items) put(bytes, lane);
  put(bytes, record.messages);
  put(bytes, record.wait_overhead);
  put(bytes, record.digest);
  put(bytes, record.peak_bytes);
  put(bytes, record.gradients);
  return bytes;
}

DeviceRecord record_from(std::span<const char> bytes) {
  DeviceRecord record;
  Reader reader(bytes);
  for (auto& lane : record.items) reader.get(lane);
  reader.get(record.messages);
  reader.get(record.wait_overhead);
  reader.get(record.digest);
  reader.get(record.peak_bytes);
  reader.get(record.gradients);
  return record;
}

}  // namespace pipesim::runtime
