import { problemLayout, toHeadsFirst, type TensorFile } from '../io/index.js';
import type { Tensor } from '../problem/index.js';
import type { TensorSource } from '../report/json/index.js';
import type { ProblemOptions } from './problem-options.js';
import { declaredFormats, problemSettings } from './problem-settings.js';
import { openTensorArgument } from './tensor-argument.js';

/** A tensor to judge, and where it came from. */
export interface SourcedTensor {
  readonly tensor: Tensor;
  readonly source: TensorSource;
}

/**
 * Reads what `<file>[:<tensor>]` names; an output in the problem's layout becomes [batch, heads, seqlen, dim].
 *
 * @param fallback the tensor where only a file is named and it holds several
 * @throws RequestError when the file cannot be read or the choice of the tensor is not clear
 */
export async function readTensorArgument(
  argument: string,
  problemFile: TensorFile,
  fallback: 'out' | 'lse',
  options: ProblemOptions,
): Promise<SourcedTensor> {
  const headsFirst = problemLayout(problemFile, problemSettings(options)) === 'bhsd';
  const chosen = await openTensorArgument(
    argument,
    problemFile,
    fallback,
    declaredFormats(options),
  );
  try {
    const tensor = await chosen.file.read(chosen.name);
    return {
      tensor: fallback === 'out' && !headsFirst ? toHeadsFirst(tensor) : tensor,
      source: {
        path: chosen.file.path,
        tensor: chosen.name,
        sha256: await chosen.file.sha256(chosen.name),
        format: tensor.format,
      },
    };
  } finally {
    await chosen.close();
  }
}
