// @ts-check
import { fileURLToPath } from 'node:url';
import { create, globals } from 'webgpu';

const installation =
  'no WebGPU adapter: Dawn needs a Vulkan driver; without a GPU, apt install mesa-vulkan-drivers libvulkan1 (on Debian 12 with -t bookworm-backports: its Mesa 22.3 is too old, 25.0 works)';

// Devices are valid only as long as what `create` returned is referenced.
Object.assign(globalThis, globals);
const gpu = create([]);

/**
 * A device of this machine's first WebGPU adapter, a GPU or a software one, and a sentence that
 * names the adapter.
 * @returns {Promise<{ device: GPUDevice, description: string }>}
 * @throws {Error} when there is no adapter; the message says what to install
 */
export async function requestDevice() {
  const adapter = await gpu.requestAdapter();
  if (adapter === null) throw new Error(installation);
  const { vendor, architecture, description } = adapter.info;
  const kind = adapter.info.isFallbackAdapter ? 'software' : 'GPU';
  const device = await adapter.requestDevice();
  return { device, description: `${description || `${vendor} ${architecture}`} (${kind})` };
}

// `node adapter.mjs` prints the adapter, or what to install, and then exits with status 2.
if (process.argv[1] === fileURLToPath(import.meta.url)) {
  try {
    const { device, description } = await requestDevice();
    console.log(description);
    device.destroy();
  } catch (error) {
    console.error(/** @type {Error} */ (error).message);
    process.exitCode = 2;
  }
}
