// AssemblyScript: the fp64 inner loops of the error bounds, two lanes at a time. Tiles are 64 queries
// by 64 keys; every array of rows has a place for each of the 64. Nothing here carries a radius: a
// result is off by some 2^-44 of itself, which the bounds' final factor covers.

export { capScores, product } from '../../../../oracles/attention/assembly/tile-kernels';
export { chainProduct, loadPanels, scanScores, scoreErrors } from './scores';
export { finishElements } from './elements';
export { narrowMoments } from './narrow-moments';
export { addTile, addUnknown, moments } from './sums';
export { weigh } from './weights';
