import { UnsupportedProblem } from '../../../properties/index.js';
import { gradientQuantities, outputGradient } from '../../audit/index.js';
import { quantities } from '../../problem/index.js';
import { RequestError } from '../../request-error.js';
import {
  readOutputGradient,
  type OpenedKernel,
  type OpenProblem,
  type ReadyKernel,
} from '../audit/index.js';
import { launchTensor } from '../launch/launch-tensors.js';
import { chainOutputs, openTemplate, type LaunchTemplate } from '../launch/open-launch.js';
import { runOnProblem, type ProblemRun } from '../launch/template/run-on-problem.js';
import { readTensorsBeside, tensorsBeside } from '../launch/tensors-beside.js';
import { madeSource } from './made-source.js';

/** The names of gradients that a template writes. */
function gradientsOf(template: LaunchTemplate): readonly string[] {
  const given = chainOutputs(template).map(({ as }) => as);
  return gradientQuantities.map(({ name }) => name).filter((name) => given.includes(name));
}

/**
 * The template of a launch whose results are judged.
 * @throws RequestError for one that writes nothing to judge, or cannot be read, and for a dO that it does not
 * take
 */
async function openJudgedTemplate(path: string, dout: string | undefined): Promise<LaunchTemplate> {
  const template = await openTemplate({ path });
  const given = chainOutputs(template).map(({ as }) => as);
  const [main] = quantities;
  const hasGradients = gradientsOf(template).length > 0;
  if (dout !== undefined && !hasGradients && !tensorsBeside(template).has(outputGradient.name))
    throw new RequestError(
      `${path}: takes no tensor "${outputGradient.name}" and gives no gradient; leave out --dout`,
    );
  if (given.includes(main.name) || hasGradients) return template;
  throw new RequestError(
    `${path}: no output is given as "${main.name}" or as a gradient; write {"name": "O", "as": "${main.name}", "format": "bf16"}`,
  );
}

/** Tensors that a template takes beside Q, K and V: of the problem's file, and dO wherever it is. */
async function readBeside(
  template: LaunchTemplate,
  { file, reading }: OpenProblem,
  named: string | undefined,
) {
  const beside = await readTensorsBeside(template, file, reading.headsFirst);
  const { name } = outputGradient;
  if (!tensorsBeside(template).has(name)) return beside;
  const { tensor } = await readOutputGradient(file, { named, wants: '--launch' }, reading);
  return [...beside.filter((one) => one.name !== name), launchTensor(name, tensor)];
}

/** dO, for judging gradients; null if none are judged. */
async function gradientOfOutput(
  wanted: readonly string[],
  { file, reading }: OpenProblem,
  named: string | undefined,
) {
  return wanted.length === 0
    ? null
    : readOutputGradient(file, { named, wants: '--launch' }, reading);
}

/** Tensors of a run by the names of their quantities, with their sources. */
function sourcedOf({ outputs }: ProblemRun, names: readonly string[]) {
  const given = names.filter((name) => Object.hasOwn(outputs, name));
  return {
    tensors: Object.fromEntries(given.map((name) => [name, outputs[name]])),
    sources: Object.fromEntries(given.map((name) => [name, madeSource(name, outputs[name])])),
  };
}

/**
 * Runs a compiled kernel on a problem, on the machine; or tells that it declines such problems.
 * @throws RequestError for a launch that does not fit, and for instructions that are not supported
 */
async function executeLaunch(
  template: LaunchTemplate,
  open: OpenProblem,
  named: string | undefined,
): ReturnType<ReadyKernel['run']> {
  const beside = await readBeside(template, open, named);
  const wanted = gradientsOf(template);
  const dout = await gradientOfOutput(wanted, open, named);
  try {
    const run = runOnProblem(template, open.problem, beside);
    const { machine } = run;
    const made = sourcedOf(run, wanted);
    const gradients = dout && {
      tensors: { ...made.tensors, dout: dout.tensor },
      sources: { ...made.sources, dout: dout.source },
    };
    const { out, lse = null } = run.outputs as Partial<typeof run.outputs>;
    if (out !== undefined) {
      const { sources } = sourcedOf(run, ['lse']);
      const judged = {
        outputs: { out, lse },
        sources: { out: madeSource('out', out), lse: null, ...sources },
      };
      return { machine, judged, gradients };
    }
    if (gradients === null) throw new Error('a template that gives nothing was not refused');
    return { machine, judged: null, gradients };
  } catch (error) {
    if (!(error instanceof UnsupportedProblem)) throw error;
    const reason = `the compiled kernel of ${template.path} declines the problem: ${error.message}`;
    return { failure: { reason, isDeclined: true } };
  }
}

/**
 * Opens a compiled kernel, run on the machine by a launch file that is a template.
 * @throws RequestError as `KernelSource.open`
 */
export async function openCompiled(path: string, dout: string | undefined): Promise<OpenedKernel> {
  const template = await openJudgedTemplate(path, dout);
  const givesGradients = gradientsOf(template).length > 0;
  return {
    takes: tensorsBeside(template),
    givesGradients,
    prepare: (open) => ({
      hasGradients: givesGradients,
      reason: null,
      run: () => executeLaunch(template, open, dout),
    }),
  };
}
