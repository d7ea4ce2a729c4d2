#include "validate/calibration/harness/cudnn_graph.h"

#include <algorithm>
#include <iterator>

namespace pipesim::calibration {
namespace {

constexpr int64_t kFirstId = 1;
constexpr int64_t kAlignmentBytes = 16;
constexpr int64_t kMaximumEngines = 16;

// The engine configurations that the heuristics offer, best first.
std::vector<CudnnDescriptor> engine_configurations(const CudnnDescriptor& graph,
                                                   const CudnnDescriptor* device) {
  CudnnDescriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, CUDNN_HEUR_MODE_A);
#if CUDNN_VERSION >= 90800
  if (device != nullptr) heuristics.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, *device);
#else
  (void)device;
#endif
  heuristics.finalize("cuDNN heuristics");

  std::vector<CudnnDescriptor> engines;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (int64_t i = 0; i < kMaximumEngines; ++i) {
    raw.push_back(engines.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR).get());
  }
  int64_t found = 0;
  check_cudnn(
      cudnnBackendGetAttribute(heuristics.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                               CUDNN_TYPE_BACKEND_DESCRIPTOR, kMaximumEngines, &found, raw.data()),
      "cuDNN heuristics results");
  engines.erase(engines.begin() + std::min(found, kMaximumEngines), engines.end());
  return engines;
}

}  // namespace

void check_cudnn(cudnnStatus_t status, std::string_view what) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  std::array<char, 1024> detail{};
  cudnnGetLastErrorString(detail.data(), detail.size());
  throw CudnnError(std::string(what) + ": " + cudnnGetErrorString(status) +
                   (detail[0] != '\0' ? std::string(" (") + detail.data() + ")" : std::string()));
}

CudnnDescriptor::CudnnDescriptor(cudnnBackendDescriptorType_t type) {
  cudnnBackendDescriptor_t raw = nullptr;
  check_cudnn(cudnnBackendCreateDescriptor(type, &raw), "cudnnBackendCreateDescriptor");
  descriptor_.reset(raw);
}

void CudnnDescriptor::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                          int64_t count, const void* values) {
  check_cudnn(cudnnBackendSetAttribute(get(), name, type, count, values),
              "cudnnBackendSetAttribute " + std::to_string(static_cast<int>(name)));
}

void CudnnDescriptor::set(cudnnBackendAttributeName_t name, const CudnnDescriptor& child) {
  const cudnnBackendDescriptor_t raw = child.get();
  set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &raw);
}

void CudnnDescriptor::set(cudnnBackendAttributeName_t name, std::span<const int64_t> values) {
  set(name, CUDNN_TYPE_INT64, static_cast<int64_t>(values.size()), values.data());
}

void CudnnDescriptor::finalize(std::string_view what) {
  check_cudnn(cudnnBackendFinalize(get()), what);
}

CudnnPlan::CudnnPlan(CudnnDescriptor plan, std::vector<CudnnDescriptor> keep)
    : keep_(std::move(keep)), plan_(std::move(plan)) {
  int64_t count = 0;
  check_cudnn(cudnnBackendGetAttribute(plan_.get(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                       CUDNN_TYPE_INT64, 1, &count, &workspace_bytes_),
              "cuDNN plan workspace size");
}

void CudnnPlan::execute(cudnnHandle_t handle, const Bindings& bindings, void* workspace) const {
  std::vector<int64_t> ids;
  std::vector<void*> pointers;
  for (const auto& [id, pointer] : bindings) {
    ids.push_back(id);
    pointers.push_back(pointer);
  }
  CudnnDescriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, ids);
  pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR,
           static_cast<int64_t>(pointers.size()), pointers.data());
  pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
  pack.finalize("cuDNN variant pack");
  check_cudnn(cudnnBackendExecute(handle, plan_.get(), pack.get()), "cudnnBackendExecute");
}

Dimensions CudnnGraph::packed(const Dimensions& dims) {
  return {dims[1] * dims[2] * dims[3], dims[2] * dims[3], dims[3], 1};
}

CudnnGraph::Id CudnnGraph::tensor(const Dimensions& dims, const Dimensions& strides,
                                  cudnnDataType_t type, TensorKind kind) {
  const Id id = kFirstId + static_cast<Id>(tensors_.size());
  CudnnDescriptor tensor(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  tensor.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, id);
  tensor.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, type);
  tensor.set(CUDNN_ATTR_TENSOR_DIMENSIONS, dims);
  tensor.set(CUDNN_ATTR_TENSOR_STRIDES, strides);
  tensor.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, kAlignmentBytes);
  tensor.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, kind == TensorKind::kVirtual);
  tensor.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, kind == TensorKind::kScalar);
  tensor.finalize("cuDNN tensor " + std::to_string(id));
  tensors_.push_back(std::move(tensor));
  return id;
}

const CudnnDescriptor& CudnnGraph::at(Id id) const {
  return tensors_.at(static_cast<std::size_t>(id - kFirstId));
}

void CudnnGraph::matmul(Id a, Id b, Id c) {
  CudnnDescriptor& math = parts_.emplace_back(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
  math.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  math.finalize("cuDNN matmul");
  CudnnDescriptor& operation = operations_.emplace_back(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, at(a));
  operation.set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, at(b));
  operation.set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, at(c));
  operation.set(CUDNN_ATTR_OPERATION_MATMUL_DESC, math);
}

CudnnDescriptor& CudnnGraph::pointwise(cudnnPointwiseMode_t mode, cudnnDataType_t math_type,
                                       int64_t axis, Id x, Id y) {
  CudnnDescriptor& math = parts_.emplace_back(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  math.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode);
  math.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, math_type);
  if (axis >= 0) math.set(CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, axis);
  math.finalize("cuDNN pointwise");
  CudnnDescriptor& operation =
      operations_.emplace_back(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, math);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, at(x));
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, at(y));
  return operation;
}

void CudnnGraph::unary(cudnnPointwiseMode_t mode, Id x, Id y) {
  pointwise(mode, CUDNN_DATA_FLOAT, -1, x, y);
}

void CudnnGraph::binary(cudnnPointwiseMode_t mode, Id x, Id b, Id y) {
  pointwise(mode, CUDNN_DATA_FLOAT, -1, x, y).set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, at(b));
}

void CudnnGraph::select(Id when_true, Id when_false, Id mask, Id y) {
  CudnnDescriptor& operation =
      pointwise(CUDNN_POINTWISE_BINARY_SELECT, CUDNN_DATA_FLOAT, -1, when_true, y);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, at(when_false));
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, at(mask));
}

void CudnnGraph::index_along(int64_t axis, Id x, Id y) {
  pointwise(CUDNN_POINTWISE_GEN_INDEX, CUDNN_DATA_INT32, axis, x, y);
}

void CudnnGraph::reduce(cudnnReduceTensorOp_t op, Id x, Id y) {
  CudnnDescriptor& math = parts_.emplace_back(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
  math.set(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, op);
  math.set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  math.finalize("cuDNN reduction");
  CudnnDescriptor& operation =
      operations_.emplace_back(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, math);
  operation.set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, at(x));
  operation.set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, at(y));
}

void CudnnGraph::reshape(Id x, Id y) {
  CudnnDescriptor& operation = operations_.emplace_back(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, at(x));
  operation.set(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, at(y));
}

CudnnDescriptor CudnnGraph::operation_graph(cudnnHandle_t handle) {
  std::vector<cudnnBackendDescriptor_t> raw;
  for (CudnnDescriptor& operation : operations_) {
    operation.finalize("cuDNN operation " + std::to_string(raw.size()));
    raw.push_back(operation.get());
  }
  CudnnDescriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  if (handle != nullptr) graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, handle);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
            static_cast<int64_t>(raw.size()), raw.data());
  graph.finalize("cuDNN operation graph");
  return graph;
}

CudnnPlan CudnnGraph::build(cudnnHandle_t handle) {
  CudnnDescriptor graph = operation_graph(handle);
  std::vector<CudnnDescriptor> engines = engine_configurations(graph, nullptr);
  std::string reason = "the heuristics know no engine for this graph";
  for (CudnnDescriptor& engine : engines) {
    try {
      CudnnDescriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
      plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, handle);
      plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, engine);
      plan.finalize("cuDNN execution plan");
      // A plan refers to its graph; everything lives as long as the plan.
      std::vector<CudnnDescriptor> keep;
      keep.push_back(std::move(engine));
      keep.push_back(std::move(graph));
      for (auto* group : {&operations_, &parts_, &tensors_}) {
        std::move(group->begin(), group->end(), std::back_inserter(keep));
        group->clear();
      }
      return CudnnPlan(std::move(plan), std::move(keep));
    } catch (const CudnnError& error) {
      reason = error.what();
    }
  }
  throw CudnnError("cuDNN has no plan for the graph: " + reason);
}

#if CUDNN_VERSION < 90800

bool CudnnGraph::compiles_without_device(std::string_view /*device_properties_json*/) {
  throw CudnnError("cuDNN plans for a card that is described only from 9.8 on");
}

#else

bool CudnnGraph::compiles_without_device(std::string_view device_properties_json) {
  CudnnDescriptor device(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  device.set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
             static_cast<int64_t>(device_properties_json.size()), device_properties_json.data());
  device.finalize("cuDNN device properties");
  const CudnnDescriptor graph = operation_graph(nullptr);
  for (const CudnnDescriptor& engine : engine_configurations(graph, &device)) {
    CudnnDescriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, device);
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, engine);
    const cudnnStatus_t status = cudnnBackendFinalize(plan.get());
    // The last step, after compiling, is to load the kernels into the driver.
    if (status == CUDNN_STATUS_SUCCESS || status == CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER) {
      return true;
    }
  }
  return false;
}

#endif

}  // namespace pipesim::calibration
