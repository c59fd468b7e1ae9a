import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { unpack } from '../../../fixtures/gradients/unpack.mjs';
import { runBackward, runKernelModel } from '../../../kernels/index.js';
import { formats, patternsOf, type Tensor } from '../../../src/formats/index.js';
import { openTensorFile, problemLayout, readProblem, toHeadsFirst } from '../../../src/io/index.js';
import { gatherRows, posedRows } from '../../../src/problem/index.js';
import { turns } from '../../setup/turns.js';

const inTurn = turns(import.meta.url);

type Digests = Readonly<Record<string, string>>;

const folder = new URL('../../../fixtures/silicon/sm_90/fa2/', import.meta.url);
const { cases } = JSON.parse(readFileSync(new URL('captured.json', folder), 'utf8')) as {
  readonly cases: Readonly<Record<string, { readonly read: Digests; readonly wrote: Digests }>>;
};

/** Problems of which the inputs are bundled, or those in a folder that `fixtures/capture/fa2_gradients.py` has written. */
const given = process.env['FA2_PROBLEMS'];
const names = readdirSync(given ?? folder).flatMap((file) =>
  /^(.*)\.safetensors(\.br)?$/.exec(file)?.[1] === undefined
    ? []
    : [file.replace(/\.safetensors(\.br)?$/, '')],
);

function digest({ data, format }: Tensor): string {
  return createHash('sha256').update(patternsOf(data, formats[format])).digest('hex');
}

/** A problem and dO, heads before rows. */
async function readCase(name: string) {
  const scratch = mkdtempSync(join(tmpdir(), 'flashproof-fa2-'));
  try {
    const path = join(given ?? scratch, `${name}.safetensors`);
    if (given === undefined)
      writeFileSync(path, unpack(readFileSync(new URL(`${name}.safetensors.br`, folder))));
    const open = await openTensorFile(path);
    try {
      const problem = await readProblem(open);
      const dout = await open.read('dout');
      const rows = posedRows(problem);
      if (rows !== null) return { problem, dout: gatherRows(dout, rows.queries) };
      return { problem, dout: problemLayout(open, {}) === 'bshd' ? toHeadsFirst(dout) : dout };
    } finally {
      await open.close();
    }
  } finally {
    rmSync(scratch, { recursive: true });
  }
}

describe("PyTorch's FlashAttention-2 on an H200, by SHA-256", () => {
  it('was captured of every problem here', () => {
    expect(names.filter((name) => !(name in cases))).toEqual([]);
    expect(names.length).toBeGreaterThanOrEqual(5);
  });

  inTurn.each(names)(
    '%s: O, LSE and deterministic gradients',
    { timeout: 300_000 },
    async (name) => {
      const { problem, dout } = await readCase(name);
      const { q, k, v } = problem;
      const { read, wrote } = cases[name];
      for (const [input, tensor] of Object.entries({ q, k, v, dout }))
        expect(digest(tensor), input).toBe(read[input]);
      const { out, lse } = runKernelModel('fa2', problem, new Map([['splits', 'auto']]));
      const settings = new Map([['deterministic', 'true']]);
      const { dq, dk, dv } = runBackward('fa2', problem, { dout, forward: { out, lse } }, settings);
      expect({ out: digest(out), lse: digest(lse) }).toEqual({
        out: wrote['torch_flash.out'],
        lse: wrote['torch_flash.lse'],
      });
      for (const [gradient, tensor] of Object.entries({ dq, dk, dv }))
        expect(digest(tensor), gradient).toBe(wrote[`torch_flash_deterministic.${gradient}`]);
    },
  );
});
