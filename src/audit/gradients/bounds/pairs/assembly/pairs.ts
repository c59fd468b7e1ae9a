// AssemblyScript: the fp64 loops of the bounds of gradients over the pairs of a tile. Nothing here carries a radius: a result is off by
// some 2^-44 of itself, which the bounds' final factor covers.

export { product } from '../../../../../../oracles/attention/assembly/tile-kernels';
export { collectOfKeys, collectOfQueries } from './collect';
export { errDerivatives, errWeights } from './errors';
export { errKeys, errQueries, finishElements } from './finish';
export { roundOperands } from './round';
export { addToRows } from './rows';
export {
  addStretches,
  completeFactor,
  isZero,
  multiplyNorms,
  multiplyPairs,
  squarePartials,
  transpose,
} from './sums';
export { weighPairs } from './weigh';
