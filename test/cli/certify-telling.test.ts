import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { afterAll, describe, expect, it } from 'vitest';
import type { Certificate } from '../../src/jobs/index.js';
import { runInProcess } from './run-in-process.js';
import { dim, rows, writeAttention } from './small-attention.js';

const scratch = mkdtempSync(join(tmpdir(), 'flashproof-telling-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const schema = JSON.parse(
  readFileSync(new URL('../../src/report/json/certificate.schema.json', import.meta.url), 'utf8'),
) as object;
const validate = new Ajv2020({ allErrors: true }).compile(schema);

/** The certificate of small attention, changed in its kernel and its inputs; it has the form of its schema. */
async function certify(
  ...[changes, inputs, contract]: [
    Parameters<typeof writeAttention>[1]?,
    Parameters<typeof writeAttention>[2]?,
    Parameters<typeof writeAttention>[3]?,
  ]
): Promise<Certificate> {
  const path = await writeAttention(scratch, changes, inputs, contract);
  const { stdout } = await runInProcess('certify', path, '--json', '-');
  const certificate = JSON.parse(stdout) as Certificate;
  validate(certificate);
  expect(validate.errors).toBeNull();
  return certificate;
}

const zero = () => 0;
const elements = rows * dim;

describe('a certificate', () => {
  it('is given to attention, of integers and of constants too', async () => {
    for (const inputs of [{}, { v: () => 1 }, { v: (i: number) => i % 3 }])
      expect(await certify({}, inputs)).toMatchObject({ status: 'certified', reasons: [] });
  });

  it('is not given on scores of zeros, where a kernel may have any factor of q·k', async () => {
    const untold = {
      status: 'incomplete',
      reasons: ['the real values are those of any factor of q·k, so that none is told'],
    };
    expect(await certify({}, { q: zero })).toMatchObject(untold);
    const tenfold = { score: 'mul.f32 %f4, %f4, 0f41200000;' };
    expect(await certify(tenfold, { q: zero })).toMatchObject(untold);
    expect((await certify(tenfold)).status).toBe('refuted');
  });

  it('is given to no kernel that leaves queries and keys out, where the scores are zeros', async () => {
    const certificate = await certify({ score: 'mov.f32 %f4, 0f00000000;' }, { q: zero });
    expect(certificate.algebra!.every(({ holds }) => holds)).toBe(true);
    expect(certificate).toMatchObject({
      status: 'incomplete',
      reasons: [
        'the real values are those of any factor of q·k, so that none is told',
        `${elements} elements of out do not depend on what must reach them (row 0 on query 0)`,
        `${rows} elements of lse do not depend on what must reach them (row 0 on query 0)`,
      ],
    });
  });

  it('is given to no kernel that rounds values, where they are integers', async () => {
    const score = 'cvt.rni.s32.f32 %r9, %f6; cvt.rn.f32.s32 %f6, %r9;';
    const { status, influence } = await certify({ score }, { v: (i) => i % 3 });
    expect(status).toBe('incomplete');
    const [out, lse] = influence!;
    expect(out.missed.elements).toBe(elements);
    for (const { names, labels } of out.missed.worst) {
      expect(labels).toBe(rows);
      expect(names).toEqual(Array.from({ length: rows }, (_, key) => `value ${key}`));
    }
    expect(lse.missed.elements).toBe(0);
  });

  it('is given to no kernel whose elements are constants, where the values are', async () => {
    const quotient =
      'div.rn.f32 %f9, %f8, %f7; setp.ne.u32 %p3, %r3, 0; @%p3 mov.f32 %f9, 0f3F800000;';
    const { status, reasons } = await certify({ quotient }, { v: () => 1 });
    expect(status).toBe('incomplete');
    expect(reasons).toEqual([expect.stringContaining(`${elements - 1} elements of out do not`)]);
  });

  it('is given to no launch whose values are zeros or NaNs by other laws too', async () => {
    const isUntold = (output: string) =>
      expect.stringContaining(`no element of ${output} tells attention from other laws`) as string;
    const product = { quotient: 'mul.f32 %f9, %f8, %f7;' };
    const ofZeros = await certify(product, { v: zero });
    expect(ofZeros).toMatchObject({ status: 'incomplete', reasons: [isUntold('out')] });
    const ofNaNs = await certify(product, { q: () => NaN });
    expect(ofNaNs.reasons).toEqual([isUntold('out'), isUntold('lse')]);
    const none = { tensor: 'q', shape: [1, 1, 0, dim] };
    const ofNothing = await certify(
      {},
      {},
      {
        q: none,
        out: { ...none, tensor: 'out' },
        lse: { tensor: 'lse', shape: [1, 1, 0] },
      },
    );
    expect(ofNothing.status).not.toBe('refuted');
  });

  it('is given to no kernel that reads memory which nobody has written', async () => {
    for (const space of ['local', 'shared']) {
      const read = (isWritten: boolean) =>
        `{ .${space} .align 4 .b8 cell[16]; .reg .b64 %at; mov.u64 %at, cell;
  ${isWritten ? `st.${space}.f32 [%at], 0f00000000; bar.sync 0;` : ''}
  ld.${space}.f32 %f11, [%at]; div.rn.f32 %f9, %f8, %f7; add.f32 %f9, %f9, %f11; }`;
      const { status, reasons } = await certify({ quotient: read(false) });
      expect(status).toBe('incomplete');
      expect(reasons).toContain(`${elements} elements of out are lost`);
      if (space === 'local')
        expect((await certify({ quotient: read(true) })).status).toBe('certified');
    }
  });

  it('says which output the contract does not name', async () => {
    const { silent } = await certify({}, {}, { lse: undefined });
    expect(silent).toContain('what lse is to be, which the contract does not name');
    const fewer = (tensor: string, ...columns: readonly number[]) => ({
      tensor,
      shape: [1, 1, rows - 2, ...columns],
    });
    const certificate = await certify(
      {},
      {},
      {
        q: fewer('q', dim),
        out: fewer('out', dim),
        lse: fewer('lse'),
      },
    );
    expect(certificate.silent).toEqual(
      expect.arrayContaining([
        `${2 * dim} elements of out, which the contract does not name`,
        '2 elements of lse, which the contract does not name',
      ]),
    );
  });

  it('is refused to bits that are NaN where the real values are attention', async () => {
    const { status, reasons, algebra } = await certify({}, { q: (i) => 300 + (i % 3), k: () => 1 });
    expect(algebra!.every(({ holds }) => holds)).toBe(true);
    expect(status).toBe('refuted');
    expect(reasons).toEqual([
      `${elements} elements of out are infinite or NaN, though their real values are finite`,
      `${rows} elements of lse are infinite or NaN, though their real values are finite`,
    ]);
  });
});
