export {
  createSpecialFunctionArrays,
  packSegments,
  packSquares,
  specialFunctionTables,
  type Float32SpecialFunctionName,
  type SpecialFunctionTables,
} from './special-functions.js';
export { exp2Approx, exp2ApproxFtz } from './ex2.js';
export { exp2ApproxFp16, exp2ApproxFtzBf16, tanhApproxBf16, tanhApproxFp16 } from './half.js';
export { lg2ApproxFtz } from './lg2.js';
export {
  hardwareExp2Error,
  hardwareExp2Flush,
  hardwareLog2Error,
  hardwareReciprocalError,
  specialFunctions,
  type SpecialFunction,
  type SpecialFunctionName,
} from './special-functions.js';
export { rsqrtApproxFtz } from './rsqrt.js';
export { rcpApproxFtz } from './rcp.js';
export { tanhApprox } from './tanh.js';
