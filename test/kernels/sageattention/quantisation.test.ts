import { describe, expect, it } from 'vitest';
import { quantisationOf, quantiseProblem } from '../../../kernels/index.js';
import { modelPremises } from '../../../src/audit/index.js';
import { decodeToFloat64, formats, type Tensor } from '../../../src/formats/index.js';
import { openTensorFile } from '../../../src/io/index.js';

const path = 'fixtures/quantised/sageattention-quantised-150-d64.safetensors';

describe("SageAttention 1's quantisation", () => {
  it('has the integers and factors of the compiled kernel, with a short last block', async () => {
    const file = await openTensorFile(path);
    try {
      const [q, k] = [await file.read('q_given'), await file.read('k_given')];
      const problem = { q, k, v: k, scale: 0.125, causal: false, window: null, softcap: null };
      const declared = modelPremises('sageattention', new Map([['smoothing', 'none']]));
      const { problem: inner } = quantiseProblem(problem, quantisationOf(declared)!);
      for (const name of ['q', 'k'] as const) {
        const own: Tensor = inner[name];
        const { data } = await file.readIntegers(name);
        expect([...decodeToFloat64(own.data, formats[own.format])]).toEqual([...data]);
        const factors = await file.read(`${name}_descale`);
        expect([...own.scales!.factors[0].values]).toEqual([...factors.data]);
      }
    } finally {
      await file.close();
    }
  });
});
