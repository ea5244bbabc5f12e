/* Stands in NVML's place, for nvidia-ml-py and whatever else reads GPUs (nvitop, nvtop). */
#include "answers.h"

static int init(void) {
    initialised = 1;
    int code = enter("nvmlInit", -1);
    if (code) initialised = 0;
    return code && !strcmp(driver[state], "gone") ? NOT_LOADED : code;
}
int nvmlInitWithFlags(unsigned int flags) { return (void)flags, init(); }
int nvmlInit_v2(void) { return init(); }
int nvmlShutdown(void) { return initialised = 0, OK; }

const char *nvmlErrorString(int code) {
    switch (code) {
    case UNINITIALIZED: return "Uninitialized";
    case NOT_SUPPORTED: return "Not Supported";
    case NOT_FOUND: return "Not Found";
    case NOT_LOADED: return "Driver Not Loaded";
    case LOST: return "GPU is lost";
    default: return "Unknown Error";
    }
}

int nvmlSystemGetDriverVersion(char *out, unsigned int room) {
    int code = enter(__func__, -1);
    if (!code) code = judge(driver[version]);
    if (!code) snprintf(out, room, "%s", driver[version]);
    return code;
}
int nvmlSystemGetCudaDriverVersion(int *out) {
    int code = enter(__func__, -1);
    if (!code) code = judge(driver[cuda]);
    if (!code) *out = atoi(driver[cuda]);
    return code;
}
int nvmlSystemGetCudaDriverVersion_v2(int *out) { return nvmlSystemGetCudaDriverVersion(out); }

int nvmlDeviceGetCount_v2(unsigned int *out) {
    int code = enter(__func__, -1);
    if (!code) *out = atoi(driver[count]);
    return code;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **handle) {
    int code = enter(__func__, -1);
    if (code) return code;
    if (index >= (unsigned int)atoi(driver[count])) return INVALID;
    if (!strcmp(gpus[index][gpu_state], "off")) return LOST;
    if (!strncmp(gpus[index][gpu_state], "error ", 6)) return atoi(gpus[index][gpu_state] + 6);
    *handle = (void *)(size_t)(index + 1);
    return OK;
}
static int find(const char *function, int key, const char *wanted, void **handle) {
    int code = enter(function, -1);
    if (code) return code;
    for (int i = 0; i < atoi(driver[count]); i++)
        if (!strcasecmp(gpus[i][key], wanted)) return nvmlDeviceGetHandleByIndex_v2(i, handle);
    return NOT_FOUND;
}
int nvmlDeviceGetHandleByUUID(const char *wanted, void **handle) {
    return find(__func__, uuid, wanted, handle);
}
int nvmlDeviceGetHandleByPciBusId_v2(const char *wanted, void **handle) {
    return find(__func__, bus, wanted, handle);
}
int nvmlDeviceGetIndex(void *handle, unsigned int *out) {
    int code = enter(__func__, number(handle));
    if (!code) *out = number(handle);
    return code;
}

#define TEXT(function, key) int function(void *handle, char *out, unsigned int room) { \
    return text(#function, handle, key, out, room); }
#define WHOLE(function, key, scale) int function(void *handle, unsigned int *out) { \
    return whole(#function, handle, key, scale, out); }

TEXT(nvmlDeviceGetUUID, uuid)
TEXT(nvmlDeviceGetName, name)
TEXT(nvmlDeviceGetSerial, serial)
WHOLE(nvmlDeviceGetPowerUsage, power_w, 1000)
WHOLE(nvmlDeviceGetEnforcedPowerLimit, power_limit_w, 1000)
WHOLE(nvmlDeviceGetPowerManagementLimit, power_limit_w, 1000)
WHOLE(nvmlDeviceGetFanSpeed, fan_percent, 1)
WHOLE(nvmlDeviceGetCurrPcieLinkGeneration, pcie_generation, 1)
WHOLE(nvmlDeviceGetMaxPcieLinkGeneration, pcie_generation, 1)
WHOLE(nvmlDeviceGetCurrPcieLinkWidth, pcie_lanes, 1)
WHOLE(nvmlDeviceGetMaxPcieLinkWidth, pcie_lanes, 1)

struct pci { char old[16]; unsigned int domain, bus, device, id, subsystem; char text[32]; };
int nvmlDeviceGetPciInfo_v3(void *handle, struct pci *out) {
    memset(out, 0, sizeof *out);
    int code = text(__func__, handle, bus, out->text, sizeof out->text);
    if (code) return code;
    sscanf(out->text, "%x:%x:%x", &out->domain, &out->bus, &out->device);
    snprintf(out->old, sizeof out->old, "%.15s", out->text + 4);
    out->id = 0x27b810deu; /* an L4 */
    return OK;
}

struct memory { unsigned long long total, free, used; };
struct memory_v2 { unsigned int version; unsigned long long total, reserved, free, used; };
static int memory(const char *function, void *handle, struct memory_v2 *out) {
    double used = 0;
    int code = amount(function, handle, memory_used_mib, 1, &used);
    if (code) return code;
    int gpu = number(handle);
    if ((code = judge(gpus[gpu][memory_total_mib]))) return code;
    out->total = strtoull(gpus[gpu][memory_total_mib], NULL, 10) << 20;
    out->reserved = strtoull(gpus[gpu][memory_reserved_mib], NULL, 10) << 20;
    out->used = (unsigned long long)(used * (1 << 20));
    out->free = out->total - out->reserved - out->used;
    return OK;
}
int nvmlDeviceGetMemoryInfo(void *handle, struct memory *out) {
    struct memory_v2 found = {0};
    int code = memory(__func__, handle, &found); /* here, what is reserved counts as used */
    if (!code) *out = (struct memory){found.total, found.free, found.used + found.reserved};
    return code;
}
int nvmlDeviceGetMemoryInfo_v2(void *handle, struct memory_v2 *out) {
    return memory(__func__, handle, out);
}

struct rates { unsigned int gpu, memory; };
int nvmlDeviceGetUtilizationRates(void *handle, struct rates *out) {
    int code = whole(__func__, handle, utilization_percent, 1, &out->gpu);
    if (!code) out->memory = atoi(gpus[number(handle)][memory_busy_percent]);
    return code;
}

int nvmlDeviceGetTemperature(void *handle, int sensor, unsigned int *out) {
    return whole(__func__, handle, sensor == 0 ? temperature_c : -1, 1, out);
}
struct temperature { unsigned int version; int sensor, celsius; };
int nvmlDeviceGetTemperatureV(void *handle, struct temperature *out) {
    unsigned int celsius = 0;
    int code = whole(__func__, handle, temperature_c, 1, &celsius);
    out->celsius = (int)celsius;
    return code;
}
int nvmlDeviceGetTemperatureThreshold(void *handle, int kind, unsigned int *out) {
    int key = kind == 0 ? shutdown_c : kind == 1 ? slowdown_c : kind == 3 ? most_c : -1;
    return whole(__func__, handle, key, 1, out);
}
struct margin { unsigned int version; int celsius; };
int nvmlDeviceGetMarginTemperature(void *handle, struct margin *out) {
    double found = 0;
    int code = amount(__func__, handle, margin_c, 1, &found);
    if (!code) out->celsius = (int)found;
    return code;
}

int nvmlDeviceGetClockInfo(void *handle, int kind, unsigned int *out) {
    return whole(__func__, handle, kind == 2 ? clock_memory_mhz : clock_sm_mhz, 1, out);
}
int nvmlDeviceGetMaxClockInfo(void *handle, int kind, unsigned int *out) {
    return whole(__func__, handle, kind == 2 ? clock_memory_most_mhz : clock_sm_most_mhz, 1, out);
}
int nvmlDeviceGetCurrentClocksEventReasons(void *handle, unsigned long long *out) {
    double found = 0;
    int code = amount(__func__, handle, reasons, 1, &found);
    if (!code) *out = (unsigned long long)found;
    return code;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void *handle, unsigned long long *out) {
    return nvmlDeviceGetCurrentClocksEventReasons(handle, out);
}

int nvmlDeviceGetPcieThroughput(void *handle, int counter, unsigned int *out) {
    int code = whole(__func__, handle, counter ? pcie_in_mib_s : pcie_out_mib_s, 1024, out);
    if (!code) usleep((*driver[pcie_ms] ? atoi(driver[pcie_ms]) : 20) * 1000);
    return code;
}

int nvmlDeviceGetNvLinkState(void *handle, unsigned int link, unsigned int *out) {
    unsigned int links = 0;
    int code = whole(__func__, handle, nvlinks, 1, &links);
    if (!code && link >= links) return INVALID;
    if (!code) *out = 1;
    return code;
}
struct field {
    unsigned int id, scope;
    long long timestamp, latency_us;
    int type, code;
    union { double d; unsigned int u; unsigned long long ull; } value;
};
/* The number of links, and the data over one link or over all of them (scope 0xffffffff). */
int nvmlDeviceGetFieldValues(void *handle, int number_of, struct field *fields) {
    int code = enter(__func__, number(handle));
    for (int i = 0; !code && i < number_of; i++) {
        struct field *field = fields + i;
        int in = field->id == 139 || field->id == 141, out = field->id == 138 || field->id == 140;
        int key = in ? nvlink_in_kib : out ? nvlink_out_kib : field->id == 91 ? nvlinks : -1;
        const char *value = key < 0 ? "" : gpus[number(handle)][key];
        int links = atoi(gpus[number(handle)][nvlinks]);
        field->code = judge(value);
        field->type = key == nvlinks ? 1 : 3; /* unsigned int, unsigned long long */
        field->value.ull = strtoull(value, NULL, 10);
        if (key >= 0 && key != nvlinks && field->scope != 0xffffffffu && !field->code) {
            if ((int)field->scope >= links) field->code = INVALID;
            else field->value.ull /= (unsigned)links;
        }
    }
    return code;
}

int nvmlDeviceGetTotalEccErrors(void *handle, int kind, int counter, unsigned long long *out) {
    double found = 0;
    (void)counter;
    int code = amount(__func__, handle, kind ? ecc_uncorrected : ecc_corrected, 1, &found);
    if (!code) *out = (unsigned long long)found;
    return code;
}
int nvmlDeviceGetEccMode(void *handle, unsigned int *now, unsigned int *later) {
    double found = 0;
    int code = amount(__func__, handle, ecc_uncorrected, 1, &found);
    if (!code) *now = *later = 1;
    return code;
}

struct process { unsigned int pid; unsigned long long used; unsigned int instance, compute; };
static int list(const char *function, void *handle, int key, unsigned int *length,
                struct process *out) {
    int code = enter(function, number(handle)), found = 0;
    if (code) return code;
    char copy[LENGTH], *rest = NULL;
    snprintf(copy, sizeof copy, "%s", value_of(handle, key));
    if ((code = judge(copy))) return code;
    struct process processes_[PROCESSES];
    for (char *word = strtok_r(copy, " ", &rest); word && found < PROCESSES;
         word = strtok_r(NULL, " ", &rest)) {
        char *mib = strchr(word, ':');
        if (!mib) continue;
        processes_[found++] = (struct process){
            (unsigned int)strtoul(word, NULL, 10),
            mib[1] == 'N' ? ~0ULL : strtoull(mib + 1, NULL, 10) << 20, ~0u, ~0u};
    }
    unsigned int room = *length;
    *length = found;
    if (room < (unsigned int)found) return TOO_SMALL;
    memcpy(out, processes_, found * sizeof *out);
    return OK;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void *handle, unsigned int *length, struct process *out) {
    return list(__func__, handle, processes, length, out);
}
int nvmlDeviceGetGraphicsRunningProcesses_v3(void *handle, unsigned int *length,
                                             struct process *out) {
    return list(__func__, handle, graphics_processes, length, out);
}
int nvmlDeviceGetMigMode(void *handle, unsigned int *now, unsigned int *later) {
    int code = whole(__func__, handle, mig, 1, now);
    if (!code) *later = *now;
    return code;
}
int nvmlDeviceGetMaxMigDeviceCount(void *handle, unsigned int *out) {
    int code = enter(__func__, number(handle));
    if (!code) *out = 0;
    return code;
}
int nvmlDeviceIsMigDeviceHandle(void *handle, unsigned int *out) {
    int code = enter(__func__, number(handle));
    if (!code) *out = 0;
    return code;
}

/* What a screen beside ours asks for, the same of every GPU. */
#define SAME(function, value) int function(void *handle, int *out) { \
    int code = enter(#function, number(handle)); \
    if (!code) *out = value; \
    return code; }
SAME(nvmlDeviceGetPersistenceMode, 1)
SAME(nvmlDeviceGetPerformanceState, 0)
SAME(nvmlDeviceGetDisplayActive, 0)
SAME(nvmlDeviceGetDisplayMode, 0)
SAME(nvmlDeviceGetComputeMode, 0)
#define PAIR(function, code) int function(void *handle, unsigned int *one, unsigned int *two) { \
    int failed = enter(#function, number(handle)); \
    *one = *two = 0; \
    return failed ? failed : code; }
PAIR(nvmlDeviceGetEncoderUtilization, OK)
PAIR(nvmlDeviceGetDecoderUtilization, OK)
PAIR(nvmlDeviceGetDriverModel_v2, NOT_SUPPORTED)
PAIR(nvmlDeviceGetDriverModel, NOT_SUPPORTED)
PAIR(nvmlDeviceGetCudaComputeCapability, NOT_SUPPORTED)
int nvmlDeviceGetProcessUtilization(void *handle, void *samples, unsigned int *length,
                                    unsigned long long since) {
    (void)samples, (void)length, (void)since;
    int code = enter(__func__, number(handle));
    return code ? code : NOT_FOUND; /* nobody has computed since */
}
