import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { decode, encode, formats } from '../../src/formats/index.js';
import type { RoundingMode, RoundingOptions } from '../../src/formats/index.js';
import { fromPattern32, fromPattern64 } from './exact.js';

const folder = new URL('../../fixtures/silicon/sm_90/', import.meta.url);
const fixture = (file: string): Buffer => readFileSync(new URL(file, folder));

describe('fp8 decoding on an H200', () => {
  const tables = gunzipSync(fixture('half_tables.bin.gz'));
  // Four tables of 16-bit results come first.
  const start = { e4m3: 4 * 2 ** 17, e5m2: 4 * 2 ** 17 + 2 ** 18 };

  it.each(['e4m3', 'e5m2'] as const)('is matched on every %s byte', (name) => {
    for (let byte = 0; byte < 256; byte++) {
      const captured = tables.readUInt32LE(start[name] + 4 * byte) & 0xffff;
      expect(encode(formats.fp16, decode(formats[name], byte)), `byte ${byte}`).toBe(captured);
    }
  });
});

const words = (rows: string[]): string[] => rows.flatMap((row) => row.split(' '));

describe('directed, saturating and flushing conversions on an H200', () => {
  const capture = JSON.parse(fixture('edge-cases.json').toString()) as {
    inputs: { f32: string[]; f64: string[] };
    results: Record<string, string[]>;
  };
  const directions: Record<string, RoundingMode> = {
    rn: 'nearest-even',
    rz: 'toward-zero',
    rm: 'down',
    rp: 'up',
  };
  const targets = {
    f16: formats.fp16,
    bf16: formats.bf16,
    tf32: formats.tf32,
    f32: formats.fp32,
  };

  it.each(Object.keys(capture.results))('%s is matched', (instruction) => {
    const [, direction, ...rest] = instruction.split('.');
    const [target, source] = rest.slice(-2) as [keyof typeof targets, 'f32' | 'f64'];
    const options: RoundingOptions = {
      rounding: directions[direction],
      overflow: rest.includes('satfinite') ? 'saturate' : 'overflow',
      flushSubnormals: rest.includes('ftz'),
    };
    const inputs = words(capture.inputs[source]);
    const results = words(capture.results[instruction]);
    expect(results).toHaveLength(inputs.length);
    inputs.forEach((input, i) => {
      const value =
        source === 'f32' ? fromPattern32(parseInt(input, 16)) : fromPattern64(BigInt(`0x${input}`));
      const captured = parseInt(results[i], 16);
      if (source === 'f64' && Number.isNaN(value)) {
        // The silicon passes the sign and payload of an fp64 NaN on; a JavaScript NaN has neither.
        expect(decode(targets[target], captured)).toBe(NaN);
      } else {
        expect(encode(targets[target], value, options), input).toBe(captured);
      }
    });
  });
});
