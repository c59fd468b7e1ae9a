import { InvalidArgumentError, Option, type Command } from 'commander';
import { formats, type FormatName } from '../formats/index.js';
import {
  parseLayout,
  parseScale,
  parseSoftcap,
  parseWindow,
  type DeclaredFormats,
  type Layout,
  type ProblemSettings,
} from '../io/index.js';
import type { Window } from '../problem.js';
import { RequestError } from '../request-error.js';

/** What the problem options parse to. */
export interface ProblemOptions {
  readonly scale?: number;
  readonly causal?: boolean;
  readonly window?: Window | null;
  readonly softcap?: number | null;
  readonly layout?: Layout;
  readonly format?: DeclaredFormats;
}

/** A parser for commander from one that throws RequestErrors. */
export function argument<T>(parse: (text: string) => T): (text: string) => T {
  return (text) => {
    try {
      return parse(text);
    } catch (error) {
      if (error instanceof RequestError) throw new InvalidArgumentError(`${error.message}.`);
      throw error;
    }
  };
}

function declareFormat(text: string, declared: DeclaredFormats = {}): DeclaredFormats {
  const equals = text.lastIndexOf('=');
  const name = text.slice(0, Math.max(equals, 0));
  const format = text.slice(equals + 1);
  if (name === '' || !Object.hasOwn(formats, format))
    throw new InvalidArgumentError(
      `give <tensor>=<format>, the format one of ${Object.keys(formats).join(', ')}.`,
    );
  return { ...declared, [name]: format as FormatName };
}

/** Adds the options that say what a problem file's q, k, v are to compute. */
export function addProblemOptions(command: Command): Command {
  return command
    .option(
      '--scale <x>',
      "factor on Q·K (default: the file's, else 1/√d)",
      argument((text) => parseScale(text, 'the scale')),
    )
    .option('--causal', 'causal mask, aligned to the bottom right')
    .option('--no-causal', "no causal mask, whatever the file's metadata says")
    .addOption(
      new Option('--window <left,right>', 'sliding window in keys, -1 for no limit').argParser(
        argument((text) => parseWindow(text, 'the window')),
      ),
    )
    .option(
      '--softcap <x>',
      'scores become x·tanh(score/x)',
      argument((text) => parseSoftcap(text, 'the softcap')),
    )
    .option(
      '--layout <layout>',
      'order of the dimensions: bhsd or bshd',
      argument((text) => parseLayout(text, 'the layout')),
    )
    .option(
      '--format <tensor=format>',
      'format of a tensor whose dtype does not tell (repeatable)',
      declareFormat,
    );
}

/** The settings that the options fix. */
export function problemSettings(options: ProblemOptions): ProblemSettings {
  const { scale, causal, window, softcap, layout } = options;
  return { scale, causal, window, softcap, layout };
}
