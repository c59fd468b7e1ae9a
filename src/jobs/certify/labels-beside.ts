import { type Recorder, type TracedInput, valueInStore } from '../../meaning/record/index.js';
import { decidedValue } from '../../meaning/trace/index.js';
import type { FollowedRun } from './followed-run.js';

/** The inputs of a run of which a launch has written an element. */
function writtenInputs({ trace, stores, inputs }: Recorder): ReadonlySet<string> {
  const isWritten = ({ tensor, format: { bytes } }: TracedInput, input: number): boolean => {
    const store = stores.get(tensor);
    const count = store === undefined ? 0 : Math.floor(store.bytes.length / bytes);
    for (let i = 0; i < count; i++) {
      const value = valueInStore(trace, store!, i * bytes, bytes);
      const isOwn =
        value > decidedValue &&
        trace.operationOf(value).origin === 'input' &&
        trace.a[value] === input &&
        trace.b[value] === i;
      if (!isOwn) return true;
    }
    return false;
  };
  return new Set(inputs.filter(isWritten).map(({ tensor }) => tensor));
}

/**
 * The tensors of a launch that are neither rows of the problem nor outputs nor written by it, as labels: whatever they are, they may reach all.
 *
 * @param ofContract the tensors that the contract names
 * @param firstTensor the label of the first tensor of the launch
 */
export function labelsBeside(
  { recorder, result }: FollowedRun,
  ofContract: readonly string[],
  firstTensor: number,
): readonly number[] {
  const outputs = result.outputs.map(({ name }) => name);
  const guarded = new Set([...ofContract, ...outputs, ...writtenInputs(recorder)]);
  return recorder.inputs.flatMap(({ tensor }, input) =>
    guarded.has(tensor) ? [] : [firstTensor + input],
  );
}
