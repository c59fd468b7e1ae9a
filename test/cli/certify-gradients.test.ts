import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { afterAll, describe, expect, it } from 'vitest';
import { readKernel, readManifest } from '../../fixtures/ptx/unpack.mjs';
import { openTensorFile, type RawTensor, writeRawTensors } from '../../src/io/index.js';
import type { AlgebraCertificate, Certificate } from '../../src/jobs/index.js';
import { followLaunch } from '../../src/jobs/index.js';
import { certifySame } from '../../src/jobs/certify/certify-same.js';
import { tellContract } from '../../src/jobs/certify/told-contract.js';
import { runInProcess } from './run-in-process.js';
import { turns } from '../setup/turns.js';

const inTurn = turns(import.meta.url);

const scratch = mkdtempSync(join(tmpdir(), 'flashproof-certify-gradients-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const schema = JSON.parse(
  readFileSync(new URL('../../src/report/json/certificate.schema.json', import.meta.url), 'utf8'),
) as object;
const validate = new Ajv2020({ allErrors: true }).compile(schema);

async function certify(...args: readonly string[]): Promise<Certificate> {
  const { stdout } = await runInProcess('certify', ...args, '--json', '-');
  const certificate = JSON.parse(stdout) as Certificate;
  validate(certificate);
  expect(validate.errors).toBeNull();
  return certificate;
}

const recorded = new URL('../../examples/triton/recorded/', import.meta.url).pathname;

interface LaunchJson {
  readonly grid: readonly number[];
  readonly contract: Readonly<Record<string, { readonly shape: readonly number[] }>>;
}

/** A copy of the recorded backward with a changed launch file. */
function copied(name: string, change: (launch: LaunchJson) => object): string {
  const folder = join(scratch, name);
  cpSync(join(recorded, 'backward-sm_90'), folder, { recursive: true });
  const path = join(folder, 'launch.json');
  writeFileSync(path, JSON.stringify(change(JSON.parse(readFileSync(path, 'utf8')) as LaunchJson)));
  return path;
}

const ofLse = '2^(scale·fp32(log2 e)·q·k − lse·fp32(log2 e))';

function expectGradient(algebra: AlgebraCertificate, weights: string, delta: string | null): void {
  expect(algebra).toMatchObject({ weights, delta, holds: true, without: 0 });
  expect(algebra.constant).toBe(algebra.output === 'dv' ? '1' : 'scale');
  expect(algebra.distance).toBeLessThan(1e-28);
}

describe('certificates of gradients', () => {
  it('prove a backward of Triton with grouped heads, a causal mask and δ of its own', async () => {
    const path = join(recorded, 'backward-sm_90', 'launch.json');
    const certificate = await certify(path);
    expect(certificate.reasons).toEqual([]);
    const [dq, dk, dv] = certificate.algebra!;
    expect([dq, dk, dv].map(({ output }) => output)).toEqual(['dq', 'dk', 'dv']);
    expectGradient(dq, ofLse, 'Σ dO·O of the given O');
    expectGradient(dk, ofLse, 'Σ dO·O of the given O');
    expectGradient(dv, ofLse, null);
    // O is given in bf16, and the LSE in fp32: so far the kernel's function is from the exact gradients.
    for (const { idealDistance } of [dq, dk]) expect(idealDistance).toBeGreaterThan(1e-6);
    expect(dv.idealDistance).toBeGreaterThan(1e-9);
    for (const { idealDistance } of [dq, dk, dv]) expect(idealDistance).toBeLessThan(1e-3);
  });

  it('tell that the LSE is of base 2 and δ given, where they are', async () => {
    const kernel = readManifest().kernels.find(
      ({ name }) => name === 'triton-attention-backward-dq',
    )!;
    const { ptx, launch, tensors } = readKernel(kernel);
    const folder = join(scratch, 'given');
    mkdirSync(folder);
    writeFileSync(join(folder, 'kernel.ptx'), ptx);
    writeFileSync(join(folder, 'tensors.safetensors'), tensors);
    const rows = (tensor: string) => ({ tensor, shape: [1, 1, 128, 64] });
    const numbers = (tensor: string) => ({ tensor, shape: [1, 1, 128] });
    const named = Object.fromEntries(['q', 'k', 'v', 'dq'].map((name) => [name, rows(name)]));
    const given = { dout: rows('do'), lse: numbers('lse'), delta: numbers('delta') };
    const contract = { kind: 'attention', scale: 0.125, ...named, ...given };
    const path = join(folder, 'launch.json');
    writeFileSync(path, JSON.stringify({ ...launch, contract }));
    const { algebra, status } = await certify(path);
    expect(status).toBe('certified');
    expect(algebra).toHaveLength(1);
    const weights = '2^(scale·fp32(log2 e)·q·k − lse of base 2)';
    expectGradient(algebra![0], weights, 'delta as given');
    const { stdout } = await runInProcess('certify', path);
    expect(stdout.replace(/\s+/g, ' ')).toContain(
      `with P = ${weights}, δ = delta as given, times scale; `,
    );
  });

  it('are those of a template, whose problem has what the backward is given', async () => {
    const kernel = readManifest().kernels.find(
      ({ name }) => name === 'triton-attention-backward-dq',
    )!;
    const folder = join(scratch, 'template');
    mkdirSync(folder);
    const { ptx, tensors } = readKernel(kernel);
    writeFileSync(join(folder, 'kernel.ptx'), ptx);
    writeFileSync(join(folder, 'flat.safetensors'), tensors);
    const inputs = ['q', 'k', 'v', 'dout', 'lse', 'delta', 'dq'].map((tensor) => ({ tensor }));
    const scratches = [{ scratch: 0 }, { scratch: 0 }];
    const template = {
      entry: 'attention_backward_dq',
      grid: ['sq / 64'],
      block: [128],
      dynamicSharedBytes: 65536,
      parameters: [...inputs, { f32: 'scale' }, { s32: 'sk' }, ...scratches],
      outputs: [{ name: 'dq', as: 'dq', format: 'bf16' }],
    };
    writeFileSync(join(folder, 'template.json'), JSON.stringify(template));
    const file = await openTensorFile(join(folder, 'flat.safetensors'));
    const posed = await Promise.all(
      [...file.entries.values()].map(async ({ name, dtype, shape }) => ({
        name: name === 'do' ? 'dout' : name,
        dtype,
        shape: [1, 1, ...shape],
        bytes: await file.readBytes(name),
      })),
    );
    await file.close();
    const problem = join(folder, 'problem.safetensors');
    await writeRawTensors(
      problem,
      posed.filter(({ name }) => !name.startsWith('dq')),
    );
    const { algebra, status } = await certify(join(folder, 'template.json'), '--problem', problem);
    expect(status).toBe('certified');
    const weights = '2^(scale·fp32(log2 e)·q·k − lse of base 2)';
    expectGradient(algebra![0], weights, 'delta as given');
  });

  it('refute a factor behind the sum that is no known constant, whatever its distance', async () => {
    const folder = join(scratch, 'factor');
    cpSync(join(scratch, 'given'), folder, { recursive: true });
    const ptx = join(folder, 'kernel.ptx');
    const text = readFileSync(ptx, 'utf8');
    // One ulp above 0.125.
    writeFileSync(
      ptx,
      text.replace(/(mul\.(?:rn\.)?f32 \t?%r\d+, )%r7, (%r\d+;)/g, '$10f3E000001, $2'),
    );
    const { algebra, reasons } = await certify(join(folder, 'launch.json'));
    expect(algebra![0].constant).toBeNull();
    expect(algebra![0].distance).toBeLessThan(1e-28);
    expect(algebra![0].constantError).toBeCloseTo(2 ** -23, 12);
    expect(reasons.join('; ')).toContain("dq is not the contract's");
  });

  it('are incomplete where the contract does not name dO, and say so', async () => {
    const path = copied('no-dout', ({ contract, ...launch }) => {
      const others = Object.entries(contract).filter(([name]) => name !== 'dout');
      return { ...launch, contract: Object.fromEntries(others) };
    });
    const { status, reasons, uncompared } = await certify(path);
    expect(status).toBe('incomplete');
    expect(uncompared.map(({ output }) => output)).toEqual(['dq', 'dk', 'dv']);
    expect(reasons[0]).toBe(
      'dq is not compared with the contract: the contract does not say which tensor is dO (dout)',
    );
  });

  inTurn.each([
    ['another mask', { causal: false }],
    ['another scale', { scale: 0.126 }],
  ])('refute a kernel of %s', async (name, changes) => {
    const path = copied(name, ({ contract, ...launch }) => ({
      ...launch,
      contract: { ...contract, ...changes },
    }));
    const { status, reasons } = await certify(path);
    expect(status).toBe('refuted');
    for (const output of ['dq', 'dk', 'dv'])
      expect(reasons.join('; ')).toContain(`${output} is not the contract's`);
  });
});

/** The tensors of the recorded backward, behind those of another sequence: with V and O negated the LSE is the same. */
async function behindAnother(): Promise<readonly RawTensor[]> {
  const file = await openTensorFile(join(recorded, 'backward-sm_90', 'tensors.safetensors'));
  const isOpposite = (name: string) => name === 'v' || name === 'o';
  const tensors = await Promise.all(
    [...file.entries.values()].map(async ({ name, dtype, shape }) => {
      const bytes = await file.readBytes(name);
      const other = bytes.map((byte, i) => (isOpposite(name) && i % 2 === 1 ? byte ^ 0x80 : byte));
      return {
        name,
        dtype,
        shape: [2, ...shape.slice(1)],
        bytes: Uint8Array.from([...other, ...bytes]),
      };
    }),
  );
  await file.close();
  return tensors;
}

describe('rows of gradients of two launches', () => {
  inTurn('are paired by what they are asked, behind another sequence of a batch', async () => {
    const batch = copied('batch', ({ contract, grid, ...launch }) => ({
      ...launch,
      grid: [grid[0], 2, 1],
      contract: Object.fromEntries(
        Object.entries(contract).map(([name, view]) => [
          name,
          Array.isArray(view.shape) ? { ...view, shape: [2, ...view.shape.slice(1)] } : view,
        ]),
      ),
    }));
    await writeRawTensors(join(scratch, 'batch', 'tensors.safetensors'), await behindAnother());
    const path = join(recorded, 'backward-sm_90', 'launch.json');
    const { same, status } = await certify(path, '--same', batch);
    expect(same!.outputs).toMatchObject(
      [96, 48, 48].map((rows) => ({ rows, unpaired: 0, same: rows, other: 0, lost: 0 })),
    );
    expect(status).toBe('certified');
  });

  inTurn('have no pair where a query that they depend on is given another dO', async () => {
    const other = copied('other-dout', (launch) => launch);
    const path = join(scratch, 'other-dout', 'tensors.safetensors');
    const file = await openTensorFile(path);
    const tensors = await Promise.all(
      [...file.entries.values()].map(async ({ name, dtype, shape }) => {
        const bytes = (await file.readBytes(name)).slice();
        // An element of query 20 of the first head, which sees keys 0 to 20.
        if (name === 'do') bytes[2 * (20 * 64 + 5)] ^= 1;
        return { name, dtype, shape, bytes };
      }),
    );
    await file.close();
    await writeRawTensors(path, tensors);
    const { same } = await certify(
      join(recorded, 'backward-sm_90', 'launch.json'),
      '--same',
      other,
    );
    // A masked query is in the sums of other keys with a weight of +0. Its product with dO leaves dV as it is; that with dP − δ may
    // be −0, which is none of the zeros that a sum of dK is known to swallow.
    expect(same!.outputs).toMatchObject([
      { rows: 95, unpaired: 1, same: 95 },
      { rows: 27, unpaired: 21, other: 27, otherWithEqualBits: 27 * 64 },
      { rows: 27, unpaired: 21, same: 27 },
    ]);
  });

  const order = async (name: string, starts?: string) =>
    tellContract(
      await followLaunch(
        { path: join(recorded, name, 'launch.json'), contract: false, races: true, starts },
        () => undefined,
      ),
      undefined,
    );

  inTurn(
    'have other expressions where atomics add in another order, and the same where nothing does',
    async () => {
      for (const name of ['backward-sm_90', 'backward-sm_90-atomics']) {
        const { outputs } = certifySame(await order(name), await order(name, 'descending'));
        const [dq, ...others] = outputs;
        for (const { rows, same } of others) expect(same).toBe(rows);
        expect([dq.rows, dq.other]).toEqual([96, name.endsWith('atomics') ? 96 : 0]);
        // Two blocks of keys are added to 0, and a + b is b + a: all bits are the same on any inputs, and more blocks would differ.
        expect(dq.otherWithEqualBits).toBe(dq.other * 64);
      }
    },
  );
});
