import { describe, expect } from 'vitest';
import { auditableLse } from '../../../src/audit/index.js';
import { anyKernelArithmetic, fa4Arithmetic } from '../../../src/audit/bounds/index.js';
import { decodeToFloat64, formats } from '../../../src/formats/index.js';
import type { Tensor } from '../../../src/problem/index.js';
import { sampled } from '../../setup/effort.js';
import { turns } from '../../setup/turns.js';
import { configuredCase } from '../../attribution/captured-attribution.js';
import { casePaths, kernels, type Kernel } from '../captured-cases.js';
import { judgeOutputs, preciseOracle, type NamedOutput } from './violations.js';

const inTurn = turns(import.meta.url);

const decode = ({ data, format }: Tensor) => decodeToFloat64(data, formats[format]);

describe.each(sampled(casePaths, 6).map((path) => path.split('/').at(-1)!.slice(0, 2)))(
  'captured case %s',
  async (digits) => {
    const { problem, outputs, configuration } = await configuredCase(digits);
    const reference = preciseOracle(problem);
    const named = (kernel: Kernel): NamedOutput => {
      const { out, lse } = outputs[kernel];
      const wanted = lse === null ? null : auditableLse(lse, reference.shape);
      return { what: kernel, out: decode(out), lse: wanted };
    };
    const numbers = (some: readonly NamedOutput[]) =>
      some.reduce((sum, { out, lse }) => sum + out.length + (lse?.length ?? 0), 0);

    inTurn('has an fa4 output within the bounds of fa4, and without an alarm', () => {
      const judged = [named('fa4')];
      const arithmetic = fa4Arithmetic(problem, configuration);
      const found = judgeOutputs(problem, reference, arithmetic, judged);
      expect(found.violations).toEqual([]);
      expect(found.checked).toBe(numbers(judged));
    });

    inTurn(
      'has outputs of all kernels within the bounds of any kernel, and without an alarm',
      () => {
        const judged = kernels.map(named);
        const arithmetic = anyKernelArithmetic(problem, outputs.fa4.out.format);
        const found = judgeOutputs(problem, reference, arithmetic, judged);
        expect(found.violations).toEqual([]);
        expect(found.checked).toBe(numbers(judged));
      },
    );
  },
);
