import { existsSync } from 'node:fs';
import { RequestError } from '../request-error.js';

/** An output to compare with, and what it is called. */
export interface CompareArgument {
  readonly name: string;
  /** As `--output` takes it: `<file>[:<tensor>]`. */
  readonly output: string;
}

/** The name of an output that was given none: its tensor, or its file. */
function defaultName(output: string): string {
  const tensor = output.slice(output.lastIndexOf(':') + 1);
  return tensor === '' ? output : tensor;
}

/**
 * What the --compare options name: `[<name>=]<file>[:<tensor>]`, split at the first equals sign unless
 * the whole of it is an existing path.
 *
 * @param judged the name of the output that the report is of
 * @throws RequestError for an argument without a file or tensor, and for a name given twice
 */
export function compareArguments(texts: readonly string[], judged: string): CompareArgument[] {
  const names = new Set([judged]);
  return texts.map((text) => {
    const equals = existsSync(text) ? -1 : text.indexOf('=');
    const output = text.slice(equals + 1);
    const name = equals < 1 ? defaultName(output) : text.slice(0, equals);
    if (equals === 0 || output === '' || output === ':')
      throw new RequestError(
        `--compare is ${JSON.stringify(text)}; give [<name>=]<file>[:<tensor>], an empty file meaning the problem file`,
      );
    if (names.has(name))
      throw new RequestError(
        `two outputs are called ${JSON.stringify(name)}; give this one a name of its own: --compare <name>=${output}`,
      );
    names.add(name);
    return { name, output };
  });
}
