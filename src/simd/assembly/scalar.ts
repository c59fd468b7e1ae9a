// AssemblyScript: the module of the scalar instructions' hot loops.
export {
  exp2ApproxFtz,
  exp2Approx,
  rcpApproxFtz,
  lg2ApproxFtz,
  rsqrtApproxFtz,
  rcpApprox,
  lg2Approx,
  rsqrtApprox,
  sqrtApproxFtz,
  sqrtApprox,
  sinApproxFtz,
  sinApprox,
  cosApproxFtz,
  cosApprox,
  tanhApprox,
} from './special-functions';
export { convert } from './convert';
export { exp2Polynomial } from './exp2-polynomial';
export { hash, fillConsecutive } from './silicon-hash';
