/* What the calls of nvml.c answer: the text file that NVML_STANDIN names, one value a line, read
   again when it has changed: "driver KEY VALUE", "GPU KEY VALUE" of the GPU with that index, or
   "* KEY VALUE" of all; a later line replaces an earlier one. The keys are below. A value can
   also be "N/A" (not supported: so is one that is not given), "error CODE", or "hangs": that
   call does not return until the file says something else. NVML_STANDIN_CALLS may name a file
   that gets a line for each call, "FUNCTION GPU". */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OK = 0, UNINITIALIZED = 1, INVALID = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, TOO_SMALL = 7,
       NOT_LOADED = 9, LOST = 15, GPUS = 16, LENGTH = 4096, PROCESSES = 256 };

/* Of the driver. state: running, gone or hangs; error: what calls say while it is gone (1);
   pcie_ms: how long a look at the PCIe traffic takes (20, as in the real one). */
#define DRIVER_KEYS X(count) X(version) X(cuda) X(state) X(error) X(pcie_ms)
/* Of a GPU. gpu_state: healthy, lost (each call of it says so), off (so does asking for its
   handle), "error CODE" (asking for its handle fails), hangs. reasons: the bits of why clocks are held down. nvlink_*_kib: counters over all
   links. processes: "none" or "PID:MIB PID:N/A ...". */
#define GPU_KEYS X(gpu_state) X(name) X(uuid) X(bus) X(serial) X(memory_total_mib) \
    X(memory_used_mib) X(memory_reserved_mib) X(utilization_percent) X(memory_busy_percent) \
    X(temperature_c) X(slowdown_c) X(shutdown_c) X(most_c) X(margin_c) X(power_w) X(power_limit_w) X(fan_percent) \
    X(clock_sm_mhz) X(clock_sm_most_mhz) X(clock_memory_mhz) X(clock_memory_most_mhz) X(reasons) \
    X(pcie_in_mib_s) X(pcie_out_mib_s) X(pcie_generation) X(pcie_lanes) X(nvlinks) \
    X(nvlink_in_kib) X(nvlink_out_kib) X(ecc_corrected) X(ecc_uncorrected) X(processes) \
    X(graphics_processes) X(mig)

#define X(key) key,
enum driver_key { DRIVER_KEYS driver_keys };
enum gpu_key { GPU_KEYS gpu_keys };
#undef X
#define X(key) #key,
static const char *driver_names[] = {DRIVER_KEYS}, *gpu_names[] = {GPU_KEYS};
#undef X

/* A new one each time, as another thread may be reading the one before. */
struct table { char of_driver[driver_keys][LENGTH], of_gpus[GPUS][gpu_keys][LENGTH]; };
static struct table nothing, *volatile now = &nothing;
#define driver (now->of_driver)
#define gpus (now->of_gpus)
static int initialised;
static struct stat seen;
static pthread_mutex_t reading = PTHREAD_MUTEX_INITIALIZER;

static void set(char (*values)[LENGTH], const char **names, int keys, const char *key,
                const char *value) {
    for (int i = 0; i < keys; i++)
        if (!strcmp(names[i], key)) strcpy(values[i], value);
}

static void read_file(void) {
    const char *path = getenv("NVML_STANDIN");
    struct stat is;
    if (!path || stat(path, &is)) return;
    pthread_mutex_lock(&reading);
    FILE *file = NULL;
    if (is.st_ino != seen.st_ino || is.st_size != seen.st_size ||
        is.st_mtim.tv_sec != seen.st_mtim.tv_sec || is.st_mtim.tv_nsec != seen.st_mtim.tv_nsec)
        file = fopen(path, "r");
    struct table *table = file ? calloc(1, sizeof *table) : NULL;
    if (table) {
        seen = is;
        char line[LENGTH + 64], whose[16], key[40], value[LENGTH];
        while (fgets(line, sizeof line, file)) {
            if (sscanf(line, "%15s %39s %4095[^\n]", whose, key, value) != 3) continue;
            if (!strcmp(whose, "driver"))
                set(table->of_driver, driver_names, driver_keys, key, value);
            for (int i = 0; i < GPUS; i++)
                if (!strcmp(whose, "*") || (*whose >= '0' && *whose <= '9' && atoi(whose) == i))
                    set(table->of_gpus[i], gpu_names, gpu_keys, key, value);
        }
        now = table;
        if (!strcmp(driver[state], "gone")) initialised = 0; /* once back, it wants nvmlInit */
    }
    if (file) fclose(file);
    pthread_mutex_unlock(&reading);
}

static int hangs(const char *value) {
    if (strcmp(value, "hangs")) return 0;
    usleep(20000);
    read_file();
    return 1;
}

/* What each call does first; `gpu` is -1 where it is of none. */
static int enter(const char *function, int gpu) {
    const char *calls = getenv("NVML_STANDIN_CALLS");
    int file = calls ? open(calls, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (file >= 0) {
        char line[LENGTH];
        int length = snprintf(line, sizeof line, gpu < 0 ? "%s -\n" : "%s %d\n", function, gpu);
        if (write(file, line, length) < 0) abort();
        close(file);
    }
    read_file();
    while (hangs(driver[state])) continue;
    if (!strcmp(driver[state], "gone")) return *driver[error] ? atoi(driver[error]) : UNINITIALIZED;
    if (!initialised) return UNINITIALIZED;
    if (gpu >= atoi(driver[count])) return INVALID;
    while (gpu >= 0 && hangs(gpus[gpu][gpu_state])) continue;
    if (gpu >= 0 && !strcmp(gpus[gpu][gpu_state], "lost")) return LOST;
    if (gpu >= 0 && !strcmp(gpus[gpu][gpu_state], "off")) return LOST;
    return OK;
}

static int number(void *handle) { return (int)(size_t)handle - 1; }

static const char *value_of(void *handle, int key) {
    while (hangs(gpus[number(handle)][key])) continue;
    return gpus[number(handle)][key];
}

static int judge(const char *value) {
    if (!strncmp(value, "error ", 6)) return atoi(value + 6);
    return !*value || !strcmp(value, "N/A") ? NOT_SUPPORTED : OK;
}

static int amount(const char *function, void *handle, int key, double scale, double *out) {
    int code = enter(function, number(handle));
    if (code) return code;
    if (key < 0) return NOT_SUPPORTED;
    const char *value = value_of(handle, key);
    if ((code = judge(value))) return code;
    *out = (value[1] == 'x' ? (double)strtoull(value, NULL, 16) : atof(value)) * scale;
    return OK;
}

static int whole(const char *function, void *handle, int key, double scale, unsigned int *out) {
    double found = 0;
    int code = amount(function, handle, key, scale, &found);
    if (!code) *out = (unsigned int)(found + 0.5);
    return code;
}

static int text(const char *function, void *handle, int key, char *out, unsigned int room) {
    int code = enter(function, number(handle));
    const char *value = code ? "" : value_of(handle, key);
    if (!code) code = judge(value);
    if (!code) snprintf(out, room, "%s", value);
    return code;
}
