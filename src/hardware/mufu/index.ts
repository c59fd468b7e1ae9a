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
export { rcpApproxFtzFloat64, rsqrtApproxFtzFloat64 } from './float64.js';
export { lg2Approx, lg2ApproxFtz } from './lg2.js';
export {
  hardwareExp2Error,
  hardwareExp2Flush,
  hardwareLog2Error,
  hardwareReciprocalError,
  specialFunctions,
  type SpecialFunction,
  type SpecialFunctionName,
} from './special-functions.js';
export { rsqrtApprox, rsqrtApproxFtz } from './rsqrt.js';
export { cosApprox, cosApproxFtz, sinApprox, sinApproxFtz } from './sine.js';
export { sqrtApprox, sqrtApproxFtz } from './sqrt.js';
export { divideByReciprocal, dividerByReciprocal, type ApproximateDivision } from './quotient.js';
export { rcpApprox, rcpApproxFtz } from './rcp.js';
export { tanhApprox } from './tanh.js';
