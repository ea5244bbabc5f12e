/* Stands in NVML's place for nvidia-ml-py: two healthy GPUs, one that lacks a sensor, one that
   is lost. With NVML_HANGS set, reading memory never returns. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OK = 0, NOT_SUPPORTED = 3, LOST = 15, COUNT = 4 };

int nvmlInitWithFlags(unsigned int flags) { return OK; }
int nvmlInit_v2(void) { return OK; }
int nvmlShutdown(void) { return OK; }
const char *nvmlErrorString(int code) {
    return code == LOST ? "GPU is lost" : code == NOT_SUPPORTED ? "Not Supported" : "Unknown";
}
int nvmlSystemGetDriverVersion(char *text, unsigned int length) {
    strncpy(text, "999.01", length);
    return OK;
}
int nvmlDeviceGetCount_v2(unsigned int *count) { *count = COUNT; return OK; }
int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **handle) {
    *handle = (void *)(size_t)(index + 1);
    return index < COUNT ? OK : 2;
}
static unsigned int number(void *handle) { return (unsigned int)(size_t)handle - 1; }
int nvmlDeviceGetUUID(void *handle, char *text, unsigned int length) {
    if (number(handle) == 3) return LOST;
    strncpy(text, "GPU-0", length);
    text[4] = (char)('0' + number(handle));
    return OK;
}
int nvmlDeviceGetName(void *handle, char *text, unsigned int length) {
    if (number(handle) == 3) return LOST;
    strncpy(text, "NVIDIA L4", length);
    return OK;
}
struct memory { unsigned long long total, free, used; };
int nvmlDeviceGetMemoryInfo(void *handle, struct memory *memory) {
    if (getenv("NVML_HANGS")) for (;;) pause();
    if (number(handle) == 3) return LOST;
    memory->total = 23034ULL << 20;
    memory->used = (1000ULL + number(handle)) << 20;
    memory->free = memory->total - memory->used;
    return OK;
}
struct rates { unsigned int gpu, memory; };
int nvmlDeviceGetUtilizationRates(void *handle, struct rates *rates) {
    if (number(handle) == 3) return LOST;
    rates->gpu = 90 + number(handle);
    rates->memory = 10;
    return OK;
}
struct temperature { unsigned int version; int sensor; int celsius; };
int nvmlDeviceGetTemperatureV(void *handle, struct temperature *out) {
    if (number(handle) == 3) return LOST;
    if (number(handle) == 2) return NOT_SUPPORTED;
    out->celsius = 70;
    return OK;
}
int nvmlDeviceGetTemperature(void *handle, int sensor, unsigned int *celsius) {
    if (number(handle) == 3) return LOST;
    if (number(handle) == 2) return NOT_SUPPORTED;
    *celsius = 70;
    return OK;
}
int nvmlDeviceGetPowerUsage(void *handle, unsigned int *milliwatts) {
    if (number(handle) == 3) return LOST;
    *milliwatts = 71500;
    return OK;
}
int nvmlDeviceGetEnforcedPowerLimit(void *handle, unsigned int *milliwatts) {
    if (number(handle) == 3) return LOST;
    *milliwatts = 72000;
    return OK;
}
struct process { unsigned int pid; unsigned long long used; unsigned int instance, compute; };
int nvmlDeviceGetComputeRunningProcesses_v3(void *handle, unsigned int *count, struct process *list) {
    static const unsigned int pids[3] = {0, 4294967295u, 4242};
    if (number(handle) == 3) return LOST;
    unsigned int room = *count;
    *count = 3;
    if (room < 3) return 7; /* insufficient size */
    for (int i = 0; i < 3; i++) list[i] = (struct process){pids[i], 512ULL << 20, 0, 0};
    return OK;
}
