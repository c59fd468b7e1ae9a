import { describe, expect, it } from 'vitest';
import { attentionOracle } from '../../oracles/index.js';
import { auditAccuracy, auditOutputs, type Audit } from '../../src/audit/index.js';
import { decodeTensor } from '../../src/formats/index.js';
import type { Problem } from '../../src/problem/index.js';
import { keyTilesContent } from '../../src/report/html/key-tiles.js';
import { createAuditReport } from '../../src/report/json/create-audit-report.js';
import { validateReport } from '../../src/report/validation/index.js';
import { filledProblem, pseudorandom, tensor } from '../setup/problems.js';
import { turns } from '../setup/turns.js';

const inTurn = turns(import.meta.url);

const [heads, queries, keys, dim, tile] = [5, 256, 384, 16, 128];
const problem = filledProblem({ heads, kvHeads: heads, queries, keys, dim }, pseudorandom(11));
const reference = attentionOracle(problem, { accuracy: auditAccuracy('bf16') });

const provenance = {
  version: '1.2.3',
  problem: { path: 'problem.safetensors', sha256: 'a'.repeat(64) },
  outputs: {},
  command: null,
  seconds: 1,
};

/** How often a kernel counts a key for a query of a head. */
type Multiple = (head: number, query: number, key: number) => number;

/** The output of a kernel that counts keys so often, rounded to bf16, by the definition of attention. */
function outputOf(
  { q, k, v, scale }: Problem,
  multiple: Multiple,
  { factor = 1, valuesFrom = (key: number) => key } = {},
) {
  const [Q, K, V] = [q, k, v].map((one) => decodeTensor(one));
  const out = new Float64Array(heads * queries * dim);
  for (let row = 0; row < heads * queries; row++) {
    const head = Math.floor(row / queries);
    let sum = 0;
    for (let key = 0; key < keys; key++) {
      let score = 0;
      const at = (head * keys + key) * dim;
      for (let c = 0; c < dim; c++) score += Q[row * dim + c] * K[at + c];
      const weight = Math.exp(score * scale) * multiple(head, row % queries, key);
      sum += weight;
      const from = (head * keys + valuesFrom(key)) * dim;
      for (let c = 0; c < dim; c++) out[row * dim + c] += weight * V[from + c];
    }
    for (let c = 0; c < dim; c++) out[row * dim + c] *= factor / sum;
  }
  return tensor('bf16', [1, heads, queries, dim], (i) => out[i]);
}

function auditOf(multiple: Multiple, changes: Parameters<typeof outputOf>[2] = {}): Audit {
  const out = outputOf(problem, multiple, changes);
  return auditOutputs(problem, { out, lse: null }, { reference, diagnose: false });
}

/** The part of the page, as text; null where there is none. */
async function pageText(audit: Audit): Promise<string | null> {
  const report = createAuditReport(problem, audit, provenance);
  await validateReport(JSON.parse(JSON.stringify(report)));
  if (report.outputs === null) throw new Error('no output');
  return keyTilesContent(report)?.html.replace(/<[^>]*>/g, ' ') ?? null;
}

const inTile = (key: number, t: number) => Math.floor(key / tile) === t;

describe('the tiles of keys of a report', () => {
  it('are left out where every tile is there', async () => {
    const audit = auditOf(() => 1);
    expect(audit.verdict.pass).toBe(true);
    expect(audit.keyTiles).toBeNull();
    expect(await pageText(audit)).toBeNull();
  });

  for (const [state, multiple] of [
    ['lost', 0],
    ['counted twice', 2],
  ] as const)
    for (const t of [0, 1, 2])
      inTurn(
        `tell that tile ${t} is ${state} for one block of a head, and no other is`,
        async () => {
          const audit = auditOf((head, query, key) =>
            head === 3 && query >= 128 && inTile(key, t) ? multiple : 1,
          );
          const [map, ...others] = audit.keyTiles!.heads;
          expect(others).toEqual([]);
          expect([audit.keyTiles!.failing, map.head]).toEqual([1, 3]);
          const [whole, broken] = map.rows;
          whole.missing.forEach((part, i) =>
            expect(Math.abs(part!)).toBeLessThan(whole.explained[i]!),
          );
          // Tiles of a weight of about a third: 1 / (1 − w) where lost, −1 / (1 + w) where doubled.
          expect(broken.missing[t]).toBeCloseTo(multiple === 0 ? 1.5 : -0.75, 0);
          const text = (await pageText(audit))!;
          const place = `eys ${tile * t} to ${tile * t + 127} measure as ${state} for queries 128 to 255`;
          expect(text).toContain(place);
          expect(text.match(/measure as/g)).toHaveLength(1);
        },
      );

  inTurn('have the worst results of the test', () => {
    const audit = auditOf((head, query, key) =>
      inTile(key, 1) && query < 128 ? 0.5 + head / 5 : 1,
    );
    const worst = audit.outputs.out.structure.filter(({ test }) => test === 'key-tile');
    expect(worst.map(({ scope }) => scope)).toEqual(['tile', 'head']);
    for (const { scope, head, firstRow, firstKey, statistic, threshold } of worst) {
      const map = audit.keyTiles!.heads.find((one) => one.head === head)!;
      const row = scope === 'head' ? map.all : map.rows.find((one) => one.firstRow === firstRow)!;
      expect(row.missing[firstKey! / tile]! / statistic).toBeCloseTo(1, 3);
      expect(row.explained[firstKey! / tile]! / threshold).toBeCloseTo(1, 3);
    }
  });

  inTurn('are of the worst three heads, and the others are counted', async () => {
    const audit = auditOf((head, _query, key) => (inTile(key, 2) ? 1 + (head + 1) / 10 : 1));
    expect(audit.keyTiles!.failing).toBe(5);
    expect(audit.keyTiles!.heads.map(({ head }) => head)).toEqual([2, 3, 4]);
    expect(await pageText(audit)).toContain(
      'The 3 heads that are worst are shown; 2 others fail too.',
    );
  });

  inTurn('name no tile where an error of another kind leaves its traces', async () => {
    const scaled = [0, 0.5, 1.05, 2, -1, 100].map((factor) => auditOf(() => 1, { factor }));
    const stale = [0, 1, 2].map((t) =>
      auditOf(() => 1, { valuesFrom: (key) => (inTile(key, t) ? (key + tile) % keys : key) }),
    );
    for (const audit of [...scaled, ...stale, auditOf((_head, _query, key) => key % 2)]) {
      expect(audit.verdict.pass).toBe(false);
      const text = await pageText(audit);
      if (text !== null)
        expect(text).toContain('o tile measures as lost or counted twice as a whole');
      if (text !== null) expect(text).not.toMatch(/measure as (lost|counted)/);
    }
  });
});
