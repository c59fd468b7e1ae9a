import { outputGradient } from '../../audit/index.js';
import { printable, type TensorFile } from '../../io/tensors/index.js';
import { RequestError } from '../../request-error.js';
import { readTensorArgument, type SourcedTensor, type TensorReading } from './read-outputs.js';

/** Names that a file may keep dO under. */
const outputGradientNames = ['dout', 'do'] as const;

/** The `<file>[:<tensor>]` of dO: from an option, else the problem's own; undefined if there is neither. */
export function outputGradientArgument(file: TensorFile, named?: string): string | undefined {
  const own = outputGradientNames.find((name) => file.entries.has(name));
  return named ?? (own === undefined ? undefined : `:${own}`);
}

/**
 * Reads dO, which an option names or the problem's file has.
 * @param wants the option that needs it, as in `--backward`
 * @throws RequestError when there is none, or it cannot be read
 */
export async function readOutputGradient(
  file: TensorFile,
  { named, wants }: { readonly named: string | undefined; readonly wants: string },
  reading: TensorReading,
): Promise<SourcedTensor> {
  const argument = outputGradientArgument(file, named);
  if (argument === undefined)
    throw new RequestError(
      `${printable(file.path)}: has no tensor ${outputGradientNames.map((name) => `"${name}"`).join(' or ')}, the gradient of the output, which ${wants} begins with; give it as --dout <file>[:tensor]`,
    );
  return readTensorArgument(argument, file, outputGradient, reading);
}
