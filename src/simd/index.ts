export {
  chunkElements,
  createScalarEngine,
  type ArrayFunction,
  type ScalarEngine,
  type SegmentKernel,
} from './scalar-engine.js';
export {
  createTensorCoreTileEngine,
  placeFusedSums,
  type TensorCoreKernels,
  type TensorCoreTileEngine,
} from './tensor-core.js';
