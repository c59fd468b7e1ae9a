import type { LaunchTensor } from '../../ptx/launch/index.js';
import { RequestError } from '../../request-error.js';
import { plainText } from '../../words/index.js';
import type { OpenedLaunch } from '../launch/open-launch.js';
import type { RunResult } from '../launch/run-launch-file.js';

function haveEqualBytes(one: Uint8Array, other: Uint8Array): boolean {
  return one.length === other.length && one.every((byte, i) => byte === other[i]);
}

/** The tensors of a chain of launches, as those that have run left them: tensors of one name are one buffer. */
export class CarriedTensors {
  readonly #tensors = new Map<string, LaunchTensor>();
  /** The bytes with which a tensor began. */
  readonly #begun = new Map<string, Uint8Array>();
  readonly #otherwise: { readonly launch: number; readonly tensor: string }[] = [];

  /** Tensors that a launch was recorded with other bytes of, by the launch's number. */
  get recordedOtherwise(): readonly { readonly launch: number; readonly tensor: string }[] {
    return this.#otherwise;
  }

  get(name: string): LaunchTensor | undefined {
    return this.#tensors.get(name);
  }

  /**
   * A launch that begins with the tensors as they were left.
   *
   * @param number of the launch, from 1
   * @throws RequestError for a tensor of another size, and for one of other bytes which no launch has changed: it is another buffer
   */
  giveTo(opened: OpenedLaunch, number: number): OpenedLaunch {
    const { launch, path, file, posed } = opened;
    const buffers = new Set(file.buffers.map(({ name }) => name));
    const tensors = launch.tensors.map((tensor): LaunchTensor => {
      const { name } = tensor;
      const left = this.#tensors.get(name);
      if (left === undefined) {
        this.#begun.set(name, tensor.bytes);
        return tensor;
      }
      const clash = (what: string) =>
        new RequestError(
          `${plainText(path)}: "${plainText(name)}" has ${what} than in the launches before it; tensors of one name are one buffer: rename it`,
        );
      if (left.bytes.length !== tensor.bytes.length)
        throw clash(`another size (${tensor.bytes.length} bytes, not ${left.bytes.length})`);
      // On a problem all launches are given what the first one finds.
      const isAsLeft =
        posed !== null || buffers.has(name) || haveEqualBytes(left.bytes, tensor.bytes);
      if (!isAsLeft && haveEqualBytes(left.bytes, this.#begun.get(name)!))
        throw clash('other bytes, though none of them has changed it,');
      if (!isAsLeft) this.#otherwise.push({ launch: number, tensor: name });
      return { ...tensor, bytes: left.bytes };
    });
    return { ...opened, launch: { ...launch, tensors } };
  }

  /** Takes down what a launch left in its tensors. */
  keep({ opened, run }: RunResult): void {
    for (const tensor of opened.launch.tensors) {
      const bytes = run.tensors.get(tensor.name);
      if (bytes !== undefined) this.#tensors.set(tensor.name, { ...tensor, bytes });
    }
  }
}
