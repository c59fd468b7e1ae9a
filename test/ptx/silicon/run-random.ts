import type { Launch } from '../../../src/ptx/launch/index.js';
import { runLaunch } from '../../../src/ptx/run/index.js';
import type { PtxModule } from '../../../src/ptx/syntax/index.js';
import { inputsOf, resultWords } from './random-kernel.js';

/** What the kernel of a seed writes here: [lane][word]. Throws where it does not come to its end without a finding. */
export function runRandomKernel(module: PtxModule, entry: number, seed = entry): BigUint64Array {
  const input = new Uint8Array(inputsOf(seed).buffer);
  const output = new Uint8Array(32 * resultWords * 8);
  const tensor = (name: string, bytes: Uint8Array) => ({
    name,
    dtype: 'U64',
    elementBits: 64,
    shape: [bytes.length / 8],
    bytes,
  });
  const launch: Launch = {
    entry: `k${entry}`,
    grid: [1, 1, 1],
    block: [32, 1, 1],
    cluster: [1, 1, 1],
    dynamicSharedBytes: 0,
    parameters: new Uint8Array(16),
    pointers: [
      { offset: 0, target: { kind: 'tensor', name: 'in', byteOffset: 0 } },
      { offset: 8, target: { kind: 'tensor', name: 'out', byteOffset: 0 } },
    ],
    tensorMaps: [],
    tensors: [tensor('in', input), tensor('out', output)],
    scratch: [],
    outputs: [{ name: 'out', as: null, format: null }],
  };
  const run = runLaunch(module, launch, { file: 'random', architecture: 'sm_90', races: false });
  if (!run.isComplete || run.findings.length > 0)
    throw new Error(`k${seed}: ${run.findings.map(({ message }) => message).join('; ')}`);
  const bytes = run.tensors.get('out')!.slice();
  return new BigUint64Array(bytes.buffer, 0, 32 * resultWords);
}
