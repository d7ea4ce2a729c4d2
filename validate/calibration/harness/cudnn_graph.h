// A cuDNN operation graph built through the backend descriptors, and the plan that executes it.
//
// The builder adds tensors and operations in any order that defines a tensor before its use;
// `build` asks cuDNN's heuristics for engines and keeps the first whose plan can be finalised.
// Tensors have four dimensions (batch, heads, rows, columns) with strides in elements; virtual
// tensors live only inside the fused kernel; scalars are floats passed by value. Errors:
// CudnnError, with cuDNN's own reason. `compiles_without_device` needs no GPU: it plans for a card
// described by cuDNN's JSON device properties, so that a graph can be proven acceptable on a
// machine that has none.
#pragma once

#include <array>
#include <cstdint>
#include <cudnn.h>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "validate/calibration/harness/cuda_resource.h"

namespace pipesim::calibration {

class CudnnError : public LibraryError {
 public:
  using LibraryError::LibraryError;
};

void check_cudnn(cudnnStatus_t status, std::string_view what);

// One backend descriptor, owned.
class CudnnDescriptor {
 public:
  explicit CudnnDescriptor(cudnnBackendDescriptorType_t type);

  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
           const void* values);
  template <class T>
  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const T& value) {
    set(name, type, 1, &value);
  }
  void set(cudnnBackendAttributeName_t name, const CudnnDescriptor& child);
  void set(cudnnBackendAttributeName_t name, std::span<const int64_t> values);
  void finalize(std::string_view what);
  [[nodiscard]] cudnnBackendDescriptor_t get() const { return descriptor_.get(); }

 private:
  struct Destroy {
    void operator()(cudnnBackendDescriptor_t d) const { cudnnBackendDestroyDescriptor(d); }
  };
  std::unique_ptr<void, Destroy> descriptor_;
};

using Dimensions = std::array<int64_t, 4>;

enum class TensorKind { kMemory, kVirtual, kScalar };

// Values bound to a plan: tensor ids with device pointers (host pointers to float for scalars).
using Bindings = std::vector<std::pair<int64_t, void*>>;

class CudnnPlan {
 public:
  CudnnPlan(CudnnDescriptor plan, std::vector<CudnnDescriptor> keep);

  [[nodiscard]] int64_t workspace_bytes() const { return workspace_bytes_; }
  void execute(cudnnHandle_t handle, const Bindings& bindings, void* workspace) const;

 private:
  std::vector<CudnnDescriptor> keep_;
  CudnnDescriptor plan_;
  int64_t workspace_bytes_ = 0;
};

class CudnnGraph {
 public:
  using Id = int64_t;

  // Row-major strides of `dims`.
  static Dimensions packed(const Dimensions& dims);

  Id tensor(const Dimensions& dims, const Dimensions& strides, cudnnDataType_t type,
            TensorKind kind);
  Id scalar() { return tensor({1, 1, 1, 1}, {1, 1, 1, 1}, CUDNN_DATA_FLOAT, TensorKind::kScalar); }
  // A virtual packed tensor.
  Id intermediate(const Dimensions& dims, cudnnDataType_t type = CUDNN_DATA_FLOAT) {
    return tensor(dims, packed(dims), type, TensorKind::kVirtual);
  }

  void matmul(Id a, Id b, Id c);
  void unary(cudnnPointwiseMode_t mode, Id x, Id y);
  void binary(cudnnPointwiseMode_t mode, Id x, Id b, Id y);
  void select(Id when_true, Id when_false, Id mask, Id y);
  void index_along(int64_t axis, Id x, Id y);
  void reduce(cudnnReduceTensorOp_t op, Id x, Id y);
  void reshape(Id x, Id y);

  [[nodiscard]] CudnnPlan build(cudnnHandle_t handle);
  // True if an engine takes the graph on a GPU with these properties and its kernels compile. Only
  // loading them is left out, since it needs a real driver.
  [[nodiscard]] bool compiles_without_device(std::string_view device_properties_json);

 private:
  CudnnDescriptor& pointwise(cudnnPointwiseMode_t mode, cudnnDataType_t math, int64_t axis, Id x,
                             Id y);
  [[nodiscard]] const CudnnDescriptor& at(Id id) const;
  CudnnDescriptor operation_graph(cudnnHandle_t handle);

  std::vector<CudnnDescriptor> tensors_;
  std::vector<CudnnDescriptor> parts_;       // descriptors that operations refer to
  std::vector<CudnnDescriptor> operations_;  // finalised when the graph is built
};

}  // namespace pipesim::calibration
