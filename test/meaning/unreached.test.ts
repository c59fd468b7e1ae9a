import { describe, expect, it } from 'vitest';
import {
  findForbiddenReach,
  type OutputReach,
  outputValues,
} from '../../src/meaning/certify/index.js';
import { InfluenceDomain } from '../../src/meaning/domains/index.js';
import { createRecorder } from '../../src/meaning/record/index.js';
import { valueFormat } from '../../src/meaning/trace/index.js';
import { runLaunch } from '../../src/ptx/run/index.js';
import { openCaptured } from '../ptx/run/captured-launch.js';
import { turns } from '../setup/turns.js';

const inTurn = turns(import.meta.url);

const [queries, keys, dim] = [150, 170, 64] as const;
/** The label of a query's row; those of keys and their values are the numbers of their rows. */
const labelOfQuery = (row: number) => 1000 + row;

/** What reaches the outputs of the causal kernel, as it is or with another line in its text, beyond the keys that a row sees. */
async function reachOf(edit?: (ptx: string) => string): Promise<readonly OutputReach[]> {
  const { module, launch, options } = await openCaptured('triton-wgmma-d64-tails-causal', edit);
  const bf16 = valueFormat('bf16')!;
  const recorder = createRecorder(['Q', 'K', 'V'].map((tensor) => ({ tensor, format: bf16 })));
  const { tracer, trace } = recorder;
  runLaunch(module, launch, { ...options, tracer });
  const domain = new InfluenceDomain(trace, (input, element) => {
    const row = Math.floor(element / dim);
    return input === 0 ? labelOfQuery(row) : row;
  });
  domain.extend();
  const mayReach = (row: number) => {
    const seen = Array.from({ length: row + 1 + keys - queries }, (_, key) => key);
    return domain.sets.of([labelOfQuery(row), ...seen]);
  };
  const outputs = [
    { name: 'O', format: 'bf16', rowLength: dim },
    { name: 'L', format: 'f32', rowLength: 1 },
  ] as const;
  return findForbiddenReach(
    domain,
    outputs.map(({ name, format, rowLength }) => {
      const { values } = outputValues(recorder, name, format)!;
      return { name, rowLength, mayReach, mustReach: mayReach, values };
    }),
    (label) => (label < keys ? `key ${label}` : `query ${label - 1000}`),
  );
}

describe('what reaches a causal kernel', () => {
  it('are no later keys with weight, and later values in the structure only', async () => {
    const [out, lse] = await reachOf();
    const none = { elements: 0, labels: 0, worst: [] };
    for (const { unknown, withWeight, missed } of [out, lse])
      expect({ unknown, withWeight, missed }).toEqual({
        unknown: 0,
        withWeight: none,
        missed: none,
      });
    // The scores of later keys are exchanged for −∞, and their values multiplied by zeros.
    expect(lse.inStructure.elements).toBe(0);
    expect(out.inStructure.worst[0].names[0]).toBe('key 21');
  });

  inTurn('is a later key where one column is masked by another row', async () => {
    const line = 'setp.gt.s32 \t%p34, %r190, %r15;';
    const [out, lse] = await reachOf((ptx) => {
      expect(ptx).toContain(line);
      return ptx.replace(line, line.replace('%r15', '%r16'));
    });
    for (const { rows, withWeight } of [
      { rows: dim, withWeight: out.withWeight },
      { rows: 1, withWeight: lse.withWeight },
    ]) {
      expect(withWeight.elements).toBeGreaterThan(0);
      expect(withWeight.elements % rows).toBe(0);
      for (const { row, names } of withWeight.worst)
        for (const name of names) {
          const key = Number(/^key (\d+)$/.exec(name)?.[1]);
          // The other row is eight further.
          expect(key).toBeGreaterThan(row + keys - queries);
          expect(key).toBeLessThanOrEqual(row + 8 + keys - queries);
        }
    }
  });
});
