export {
  createSpecialFunctionArrays,
  packSegments,
  packSquares,
  specialFunctionTables,
  type Float32SpecialFunctionName,
  type SpecialFunctionTables,
} from './arrays.js';
export { exp2Approx, exp2ApproxFtz } from './exp2.js';
export { exp2ApproxFp16, exp2ApproxFtzBf16, tanhApproxBf16, tanhApproxFp16 } from './half.js';
export { lg2ApproxFtz } from './log2.js';
export {
  hardwareExp2Error,
  hardwareExp2Flush,
  hardwareLog2Error,
  hardwareReciprocalError,
} from './measured-errors.js';
export { rsqrtApproxFtz } from './reciprocal-square-root.js';
export { rcpApproxFtz } from './reciprocal.js';
export { specialFunctions } from './special-functions.js';
export type { SpecialFunction, SpecialFunctionName } from './special-functions.js';
export { tanhApprox } from './tanh.js';
