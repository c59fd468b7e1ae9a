"""FlashAttention-4's own interface on a machine without a GPU: it chooses kernels, compiles and launches them as always; what is
launched is noted instead of run."""

import atexit, os, pathlib, shutil, tempfile

ARCHITECTURES = {"sm_100a": ("sm_100", 148), "sm_103a": ("sm_103", 148)}  # kernels' name for it, multiprocessors


def prepare(architecture, ctas, multiprocessors=None):
    """Sets what the packages read from the environment when they are loaded; the number of multiprocessors."""
    kernels, of_the_gpu = ARCHITECTURES[architecture]
    multiprocessors = multiprocessors or of_the_gpu
    dumped = tempfile.mkdtemp(prefix="flash-attention-4-")
    atexit.register(shutil.rmtree, dumped, ignore_errors=True)
    os.environ.update(
        CUTE_DSL_ARCH=architecture,
        FLASH_ATTENTION_ARCH=kernels,
        FLASH_ATTENTION_NUM_SMS=str(multiprocessors),
        FA_DISABLE_2CTA="1" if ctas == 1 else "0",
        CUTE_DSL_KEEP_PTX="1",
        CUTE_DSL_DUMP_DIR=dumped,
    )
    return multiprocessors


class Recorder:
    """Stands for `cute.compile`: what it returns notes the launches of its calls."""

    def __init__(self, compile):
        from device import HostCode

        self.compile, self.make = compile, HostCode
        self.start()

    def start(self):
        """Forgets what was launched, and the memory that it was launched with."""
        from device import Memory

        self.launches, self.memory = [], Memory()

    def __call__(self, *arguments, **options):
        folder = pathlib.Path(tempfile.mkdtemp(dir=os.environ["CUTE_DSL_DUMP_DIR"]))
        code = self.make(self.compile(*arguments, **options), folder)
        return lambda *given: self.launches.extend(code.call(given, self.memory))


def load(architecture, ctas, multiprocessors=None):
    """FlashAttention-4's interface, and the recorder of what it launches; by default for as many multiprocessors as the GPU
    has. Tensors are to be fake ones of device `cuda`."""
    multiprocessors = prepare(architecture, ctas, multiprocessors)
    import cutlass, torch

    torch.cuda.current_device = lambda: 0

    class Hardware:
        def __init__(self, device_id=0):
            pass

        def get_device_multiprocessor_count(self):
            return multiprocessors

        def get_max_active_clusters(self, cluster_size):
            return multiprocessors // cluster_size

    cutlass.utils.HardwareInfo = Hardware
    from flash_attn.cute import interface

    recorder = Recorder(cutlass.cute.compile)
    cutlass.cute.compile = recorder
    interface.is_fake_mode = lambda: False  # fake tensors are to be launched with as well
    return interface, recorder
