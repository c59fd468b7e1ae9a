import {
  declaredFormatNames,
  type DeclaredFormats,
  parseBlockSize,
  parseDropout,
  parseKvIndexOf,
  parseKvLayout,
  parseLayout,
  parsePrefix,
  parseScale,
  parseSoftcap,
  parseWindow,
  problemInputNames,
  type ProblemSettings,
} from '../../io/index.js';
import { RequestError } from '../../request-error.js';
import { parseWhole } from '../../words/index.js';
import type { RowsRequest } from '../../jobs/index.js';
import { inputOption } from './problem-inputs.js';
import type { ProblemOptions, RowOptions } from './shared-options.js';

/**
 * The settings that the problem options fix.
 * @throws RequestError for an option that does not parse
 */
export function problemSettings(options: ProblemOptions): ProblemSettings {
  const parsed = <T>(
    text: string | undefined,
    parse: (text: string, name: string) => T,
    name: string,
  ) => (text === undefined ? undefined : parse(text, name));
  return {
    scale: parsed(options.scale, parseScale, '--scale'),
    causal: options.causal,
    window: parsed(options.window, parseWindow, '--window'),
    softcap: parsed(options.softcap, parseSoftcap, '--softcap'),
    layout: parsed(options.layout, parseLayout, '--layout'),
    kvLayout: parsed(options.kvLayout, parseKvLayout, '--kv-layout'),
    prefix: parsed(options.prefix, parsePrefix, '--prefix'),
    dropoutP: parsed(options.dropoutP, parseDropout, '--dropout-p'),
    blockQ: parsed(options.blockQ, parseBlockSize, '--block-q'),
    blockK: parsed(options.blockK, parseBlockSize, '--block-k'),
    blockSize: parsed(options.blockSize, parseBlockSize, '--block-size'),
    kvIndexOf: parsed(options.kvIndexOf, parseKvIndexOf, '--kv-index-of'),
    vDim: parsed(options.vDim, parseBlockSize, '--v-dim'),
    lseSink: options.lseSink,
    inputs: Object.fromEntries(
      problemInputNames.flatMap((name) => {
        const text = options[inputOption(name)];
        return text === undefined ? [] : [[name, text]];
      }),
    ),
    descales: {
      ...(options.qDescale !== undefined && { q: options.qDescale }),
      ...(options.kDescale !== undefined && { k: options.kDescale }),
      ...(options.vDescale !== undefined && { v: options.vDescale }),
    },
    ignored: options.ignore,
  };
}

/**
 * Number of rows to judge by --rows, and the seed.
 * @throws RequestError for a number of rows or a seed that does not parse
 */
export function rowsRequest({ rows, seed }: RowOptions): RowsRequest {
  return {
    count: rows === undefined ? null : rows === 'all' ? 'all' : parseWhole(rows, '--rows', 1),
    seed: seed === undefined ? undefined : parseWhole(seed, '--seed', 0),
  };
}

/**
 * The formats that --format declares, by tensor.
 * @throws RequestError for a declaration that is not <tensor>=<format>
 */
export function declaredFormats(options: ProblemOptions): DeclaredFormats {
  return Object.fromEntries(
    (options.format ?? []).map((text) => {
      const equals = text.lastIndexOf('=');
      const format = text.slice(equals + 1);
      const known = declaredFormatNames.find((name) => name === format);
      if (equals < 1 || known === undefined)
        throw new RequestError(
          `--format is ${JSON.stringify(text)}; give <tensor>=<format>, the format one of ${declaredFormatNames.join(', ')}`,
        );
      return [text.slice(0, equals), known];
    }),
  );
}

/**
 * The texts that a repeatable option gives, by key.
 * @throws RequestError for one that is not <key>=<value>, and for a key given twice
 */
export function textsByKey(options: readonly string[] = [], flag: string): Map<string, string> {
  const texts = new Map<string, string>();
  for (const text of options) {
    const equals = text.indexOf('=');
    if (equals < 1)
      throw new RequestError(`${flag} is ${JSON.stringify(text)}; give <key>=<value>`);
    const key = text.slice(0, equals);
    if (texts.has(key)) throw new RequestError(`${flag} gives ${key} twice; give it once`);
    texts.set(key, text.slice(equals + 1));
  }
  return texts;
}

/** Where tensors are that --tensor names, by name. @throws RequestError as `textsByKey` */
export function tensorPlaces({ tensor }: ProblemOptions): Readonly<Record<string, string>> {
  return Object.fromEntries(textsByKey(tensor, '--tensor'));
}

/** The settings that --set options give, by key. @throws RequestError as `textsByKey` */
export function kernelSettings(options: readonly string[] = []): Map<string, string> {
  return textsByKey(options, '--set');
}
