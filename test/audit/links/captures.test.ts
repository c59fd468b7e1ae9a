import { describe, expect, it } from 'vitest';
import { captureVerdict, decodeChainFiles } from '../../fixtures/decode-chain-captures.js';
import { turns } from '../../setup/turns.js';
import { damagesOf } from './damages.js';

const inTurn = turns(import.meta.url);
const links = decodeChainFiles.filter(({ name }) => !name.startsWith('sage'));

describe('what an H100 gave of the links of a decode chain', () => {
  it.each(links)('$name passes, or fails by its cause', async (file) => {
    const { status, sentence, diagnosis } = await captureVerdict(file);
    expect(status, sentence).toBe(file.cause === null ? 'PASS' : 'FAIL');
    expect(diagnosis?.id ?? null).toBe(file.cause);
    if (file.contract === 'cache-write') expect(sentence).toContain('nothing else was written');
  });

  it('fails a merge that is said to divide O by a factor which it does not have', async () => {
    const [file] = links.filter(({ contract }) => contract === 'merge');
    const bytes = new Uint8Array(Float32Array.of(0.015).buffer);
    const { diagnosis } = await captureVerdict(file!, (tensors) =>
      tensors.set('output_scale', { name: 'output_scale', dtype: 'F32', shape: [1], bytes }),
    );
    expect(diagnosis?.id).toBe('factor-missing');
  });

  inTurn.each(
    links.flatMap((file) =>
      damagesOf(file).map(({ title, apply }) => ({ name: file.name, title, file, apply })),
    ),
  )('$name fails with $title', async ({ file, apply }) => {
    const { status, sentence, diagnosis } = await captureVerdict(file, apply);
    expect(status, sentence).toBe('FAIL');
    if (file.cause !== null) expect(diagnosis?.id).not.toBe(file.cause);
  });
});
