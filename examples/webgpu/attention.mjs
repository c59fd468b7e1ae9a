// @ts-check
import { readFile } from 'node:fs/promises';
import { problemShape, RequestError } from 'flashproof';

/** @import { Problem, Tensor } from 'flashproof' */

/** The tiles of attention.wgsl. */
const tile = { queries: 16, columns: 64 };

/**
 * The uniform parameters, as `Params` of attention.wgsl lays them out.
 * @param {Problem} problem
 */
function parameters(problem) {
  const { heads, groupSize, queries, keys, qkDim, vDim } = problemShape(problem);
  // No query is farther from a key than this.
  const unlimited = queries + keys;
  /** @param {number} reach */
  const limit = (reach) => (reach < 0 ? unlimited : Math.min(reach, unlimited));
  const window = problem.window ?? { left: -1, right: -1 };
  const right = problem.causal ? 0 : limit(window.right);
  const scale = Math.fround(problem.scale * Math.LOG2E);
  if (!Number.isFinite(scale) || (problem.scale !== 0 && Math.abs(scale) < 2 ** -126))
    throw new RequestError(
      `scale is ${problem.scale}; the kernel multiplies by it in fp32, so give 0 or a magnitude from 2^-126 to 2^127`,
    );
  const words = new ArrayBuffer(36);
  new Uint32Array(words, 0, 6).set([heads, groupSize, queries, keys, qkDim, vDim]);
  new Int32Array(words, 24, 2).set([limit(window.left), right]);
  new Float32Array(words, 32, 1).set([scale]);
  return words;
}

/**
 * The fp32 data of a problem's tensor.
 * @param {string} name
 * @param {Tensor} tensor
 * @returns {Float32Array}
 */
function floats(name, { format, data }) {
  if (format !== 'fp32' || !(data instanceof Float32Array))
    throw new RequestError(`${name} has format ${format}; the kernel takes fp32`);
  return data;
}

/**
 * The attention of attention.wgsl on a WebGPU device: problem → { out, lse }, both fp32, the LSE in
 * natural logarithms. Special values follow IEEE 754 carried through the formula; masked keys have no
 * influence; rows without keys are 0 with an LSE of −∞. The shader is compiled once.
 *
 * The returned function throws a RequestError for tensors that are not fp32, a softcap, and a scale
 * outside fp32, and an Error with WebGPU's message for a problem that the device has no room for.
 * @param {GPUDevice} device
 * @returns {Promise<(problem: Problem) => Promise<{ out: Tensor, lse: Tensor }>>}
 */
export async function createWebGpuAttention(device) {
  const code = await readFile(new URL('attention.wgsl', import.meta.url), 'utf8');
  const pipeline = await device.createComputePipelineAsync({
    layout: 'auto',
    compute: { module: device.createShaderModule({ code }) },
  });

  /**
   * A buffer with the contents, or with room for an output. WebGPU binds no empty buffers.
   * @param {number} bytes
   * @param {number} usage
   * @param {ArrayBufferView | ArrayBuffer} [contents]
   */
  function createBuffer(bytes, usage, contents) {
    const buffer = device.createBuffer({ size: Math.max(bytes, 4), usage });
    if (contents !== undefined && bytes > 0) device.queue.writeBuffer(buffer, 0, contents);
    return buffer;
  }

  return async (problem) => {
    const { batch, heads, queries, vDim } = problemShape(problem);
    if (problem.softcap !== null)
      throw new RequestError(`softcap is ${problem.softcap}; the kernel has none, so give null`);
    const q = floats('q', problem.q);
    const k = floats('k', problem.k);
    const v = floats('v', problem.v);
    const params = parameters(problem);
    const rows = batch * heads * queries;
    const outBytes = rows * vDim * 4;
    const lseBytes = rows * 4;

    /** @type {(shape: number[], data: Float32Array) => Tensor} */
    const tensor = (shape, data) => ({ format: 'fp32', shape, data });
    /** @param {ArrayBuffer} bytes */
    const outputs = (bytes) => ({
      out: tensor([batch, heads, queries, vDim], new Float32Array(bytes, 0, rows * vDim)),
      lse: tensor([batch, heads, queries], new Float32Array(bytes, outBytes, rows)),
    });
    if (rows === 0) return outputs(new ArrayBuffer(0));

    device.pushErrorScope('out-of-memory');
    device.pushErrorScope('validation');
    const { STORAGE, UNIFORM, COPY_DST, COPY_SRC, MAP_READ } = GPUBufferUsage;
    const inputs = [q, k, v].map((x) => createBuffer(x.byteLength, STORAGE | COPY_DST, x));
    const buffers = [
      createBuffer(params.byteLength, UNIFORM | COPY_DST, params),
      ...inputs,
      createBuffer(outBytes, STORAGE | COPY_SRC),
      createBuffer(lseBytes, STORAGE | COPY_SRC),
    ];
    const results = createBuffer(outBytes + lseBytes, MAP_READ | COPY_DST);
    try {
      const encoder = device.createCommandEncoder();
      const pass = encoder.beginComputePass();
      pass.setPipeline(pipeline);
      const entries = buffers.map((buffer, binding) => ({ binding, resource: { buffer } }));
      pass.setBindGroup(
        0,
        device.createBindGroup({ layout: pipeline.getBindGroupLayout(0), entries }),
      );
      pass.dispatchWorkgroups(
        Math.ceil(queries / tile.queries),
        // Without columns there is still an LSE.
        Math.max(Math.ceil(vDim / tile.columns), 1),
        batch * heads,
      );
      pass.end();
      encoder.copyBufferToBuffer(buffers[4], 0, results, 0, outBytes);
      encoder.copyBufferToBuffer(buffers[5], 0, results, outBytes, lseBytes);
      device.queue.submit([encoder.finish()]);
      const failures = [await device.popErrorScope(), await device.popErrorScope()];
      const failure = failures.find((error) => error !== null);
      if (failure) throw new Error(`the device cannot run this problem: ${failure.message}`);
      await results.mapAsync(GPUMapMode.READ);
      return outputs(results.getMappedRange().slice(0));
    } finally {
      for (const buffer of [...buffers, results]) buffer.destroy();
    }
  };
}
