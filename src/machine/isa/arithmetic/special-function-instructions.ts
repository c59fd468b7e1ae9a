import {
  createSpecialFunctionArrays,
  specialFunctions,
  type Float32SpecialFunctionName,
  type SpecialFunctionName,
} from '../../../hardware/index.js';
import { formats } from '../../../formats/index.js';
import { lazily } from '../../../lazily.js';
import { arrayLoop } from './array-loops.js';
import { evaluatingLoop, type RunLoop, type WordInstruction } from './instruction.js';

const arrays = lazily(() => createSpecialFunctionArrays());
const names = Object.keys(specialFunctions) as SpecialFunctionName[];
const isFloat32 = (name: SpecialFunctionName): name is Float32SpecialFunctionName =>
  specialFunctions[name].format === 'fp32';

function loopOf(name: SpecialFunctionName, inOrder: RunLoop): RunLoop {
  if (!isFloat32(name)) return inOrder;
  return arrayLoop(() => arrays()[name], formats.fp32.storageBits, inOrder);
}

/**
 * The instructions of the special function unit that src/hardware models, bit for bit those of an
 * H200. ptxas surrounds `ex2.approx.f32`, without ftz, with two more instructions for subnormal
 * results; here it is the one that PTX has.
 */
export const specialFunctionInstructions: readonly WordInstruction[] = names.map((name) => {
  const { format, evaluate: ofPattern } = specialFunctions[name];
  const mask = 2 ** formats[format].storageBits - 1;
  const evaluate = (a: number): number => ofPattern((a & mask) >>> 0);
  return {
    name,
    unit: 'mufu',
    operands: 1,
    laneOperations: 1,
    width: 1,
    evaluate,
    loop: loopOf(name, evaluatingLoop(evaluate)),
  };
});
