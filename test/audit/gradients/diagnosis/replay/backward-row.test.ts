import * as fc from 'fast-check';
import { describe, it } from 'vitest';
import {
  backwardOperands,
  backwardRows,
  type BackwardChange,
} from '../../../../../src/audit/gradients/diagnosis/replay/backward-row.js';
import { expectAlike } from '../../definitions/random-pairs.js';
import { batch, caseOf, drawns, heads, plainRows, sum } from './plain-rows.js';

describe('rows of P and dS', () => {
  it('are those of the definition, with what a pass makes of its own scores', () => {
    fc.assert(
      fc.property(drawns, (of) => {
        const made = caseOf(of);
        const { problem, measured, dout } = made;
        const change: BackwardChange = {
          ...(of.ownSum && { logarithm: 'scores' }),
          ...(of.ownDelta && { delta: 'weights' }),
          ...(of.slopePower !== undefined && { slopePower: of.slopePower }),
          ...(of.keptIn === 'P' && { keptOfDp: null }),
          ...(of.keptIn === 'dP' && { keptOfP: null }),
        };
        const rowOf = backwardRows(problem, measured, backwardOperands(problem, dout), change);
        const plain = plainRows(of, made);
        for (let head = 0; head < batch * heads; head++)
          for (let query = 0; query < of.queries; query += of.queries > 9 ? 23 : 1) {
            const row = rowOf(head, query);
            const wanted = plain(head, query);
            expectAlike(sum(row.ranges.map((one) => one.end - one.begin)), wanted.size, 'keys');
            for (const { begin, end } of row.ranges)
              for (let key = begin; key < end; key++) {
                const one = wanted.get(key)!;
                const what = `head ${head}, query ${query}, key ${key}`;
                expectAlike(row.weights[key], one.p, what);
                expectAlike(1 + row.scores[key], 1 + one.dS, what);
                expectAlike(row.sizes[key], one.size, what);
              }
          }
      }),
      { numRuns: 30 },
    );
  });
});
