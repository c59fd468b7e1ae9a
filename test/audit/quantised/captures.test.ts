import { describe, expect } from 'vitest';
import { captureVerdict, decodeChainFiles } from '../../fixtures/decode-chain-captures.js';
import { turns } from '../../setup/turns.js';
import { damagesOf } from '../links/damages.js';

const inTurn = turns(import.meta.url);
const captured = decodeChainFiles.filter(({ name }) => name.startsWith('sage'));

describe('what SageAttention 1 gave on an H100', () => {
  inTurn.each(captured)('$name passes, or fails by its cause', async (file) => {
    const { status, sentence, diagnosis } = await captureVerdict(file);
    expect(status, sentence).toBe(file.cause === null ? 'PASS' : 'FAIL');
    expect(diagnosis?.id ?? null).toBe(file.cause);
  });

  inTurn.each(
    captured
      .filter(({ cause }) => cause === null)
      .flatMap((file) =>
        damagesOf(file).map(({ title, apply }) => ({ name: file.name, title, file, apply })),
      ),
  )('$name fails with $title', async ({ file, apply }) => {
    const { status, sentence } = await captureVerdict(file, apply);
    expect(status, sentence).toBe('FAIL');
  });
});
