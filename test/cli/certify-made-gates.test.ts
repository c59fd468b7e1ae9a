import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { openTensorFile, type RawTensor, writeRawTensors } from '../../src/io/index.js';
import type { Certificate } from '../../src/jobs/index.js';
import { refusal, runInProcess } from './run-in-process.js';
import { turns } from '../setup/turns.js';

const inTurn = turns(import.meta.url);

const scratch = mkdtempSync(join(tmpdir(), 'flashproof-certify-made-gates-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const recorded = (name: string) =>
  fileURLToPath(
    new URL(`../../examples/linear-attention/recorded/${name}-sm_90/`, import.meta.url),
  );

async function certify(path: string): Promise<Certificate> {
  const { stdout } = await runInProcess('certify', path, '--json', '-');
  return JSON.parse(stdout) as Certificate;
}

/** A copy of SGLang's decode with a changed line of its PTX, or a changed contract. */
function changed(line: readonly [RegExp, string] | null, members: object = {}): string {
  const folder = mkdtempSync(join(scratch, 'launch-'));
  cpSync(recorded('sglang-decode'), folder, { recursive: true });
  const [kernel, path] = ['kernel.ptx', 'launch.json'].map((file) => join(folder, file));
  if (line) {
    const before = readFileSync(kernel, 'utf8');
    const after = before.replace(...line);
    expect(after).not.toBe(before);
    writeFileSync(kernel, after);
  }
  const launch = JSON.parse(readFileSync(path, 'utf8')) as { readonly contract: object };
  const contract = { ...launch.contract, ...members };
  writeFileSync(path, JSON.stringify({ ...launch, contract }));
  return path;
}

describe("the certificate of SGLang's decode of gated delta rules", () => {
  it.each([
    ['sglang-decode', 'gated-delta'],
    ['sglang-kda-decode', 'kda'],
  ])('%s makes gates and write strengths of the contract', async (name, family) => {
    const certificate = await certify(join(recorded(name), 'launch.json'));
    expect(certificate).toMatchObject({ status: 'certified', reasons: [], contract: { family } });
    const [out, state] = certificate.algebra!;
    expect(out).toMatchObject({ output: 'out', compared: 192, telling: 192, without: 0 });
    expect(state).toMatchObject({ output: 'final_state', compared: 3072, without: 0 });
    // Triton's exp is 2^(fp32(log2 e) x), its log libdevice's.
    const constants = '2^(fp32(log2 e)·g) and softplus by logf and fp32(ε)';
    expect([out.constant, state.constant]).toEqual([`${constants} and fp32(scale)`, constants]);
    for (const { distance, idealDistance } of [out, state]) {
      expect(distance).toBeLessThan(1e-30);
      expect(idealDistance).toBeGreaterThan(1e-10);
    }
    for (const one of certificate.influence!)
      expect(one).toMatchObject({ withWeight: { elements: 0 }, missed: { elements: 0 } });
  });

  inTurn.each([
    ['leaves the softplus out', /selp\.f32 \t%r126, %r125, %r37, %p9;/, 'mov.b32 %r126, %r37;'],
    ['has A_log without its exponential', /%r129, %r128;/, '%r129, %r86;'],
    ['negates A_log', /mul\.f32 \t%r127, %r86, 0f3F/, 'mul.f32 %r127, %r86, 0fBF'],
    ['negates gates', /sub\.f32 \t%r130, %r129, %r128;/, 'mov.b32 %r130, %r128;'],
    ['leaves the sigmoid out', /div\.full\.f32 \t%r137, %r136, %r135;/, 'mov.b32 %r137, %r36;'],
  ])('is none of a kernel that %s', async (_, pattern, by) => {
    const { status, reasons } = await certify(changed([pattern, by]));
    expect([status, reasons[0]]).toEqual([
      'refuted',
      expect.stringMatching(/^out is not the contract's: its real values are \S+ from it/),
    ]);
  });

  it('is none of a contract whose dt_bias is that of another head', async () => {
    const dtBias = { tensor: 'dt_bias', shape: [2], strides: [0], offset: 1 };
    expect((await certify(changed(null, { dt_bias: dtBias }))).status).toBe('refuted');
  });

  inTurn('speaks of the slots of a pool that the contract names, and of no others', async () => {
    const path = changed(null);
    const tensors = join(dirname(path), 'tensors.safetensors');
    const file = await openTensorFile(tensors);
    const all: RawTensor[] = [];
    for (const { name, dtype, shape } of file.entries.values()) {
      const bytes = await file.readBytes(name);
      const isPool = name === 'h0_source';
      // Another request's state behind those of the three.
      const longer = isPool
        ? Uint8Array.from({ length: bytes.length + 4096 }, (_, i) => bytes[i] ?? 0)
        : bytes;
      all.push({ name, dtype, shape: isPool ? [4, ...shape.slice(1)] : shape, bytes: longer });
    }
    await file.close();
    await writeRawTensors(tensors, all);
    const { status, silent } = await certify(path);
    expect([status, silent]).toEqual([
      'certified',
      expect.arrayContaining(['1,024 elements of h0_source, which the contract does not name']),
    ]);
    // No state is stored.
    const unstored = await certify(changed([/(setp\.lt\.s32 \t%p12, )%r284, 0;/, '$1 %r284, 9;']));
    expect([unstored.status, unstored.reasons]).toEqual([
      'refuted',
      expect.arrayContaining(['3,072 elements of h0_source are not written']),
    ]);
  });

  it('asks for both of A_log and a, and for gates once', async () => {
    expect(await refusal('certify', changed(null, { a: undefined }))).toMatch(
      /has no a, and gates are made of A_log and a; name it/,
    );
    const g = { tensor: 'A_log', shape: [1, 6, 2], strides: [0, 0, 1] };
    expect(await refusal('certify', changed(null, { g }))).toMatch(
      /there are g and A_log, of which g is made; give one/,
    );
  });
});
