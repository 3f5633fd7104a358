"""Whoever comes from Apache BookKeeper finds each of its keys and commands in `docs/storage.md`."""

import re
from pathlib import Path

from magnetar.settings.registry import SETTINGS

PAGE = (Path(__file__).parents[2] / "docs" / "storage.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("## From Apache's configuration and tools")[2].partition("\n## ")[0]
KEYS = re.findall(
    r"\S+",
    """
    advertisedAddress allocatorLeakDetectionPolicy allocatorOutOfMemoryPolicy
    allocatorPoolingConcurrency allocatorPoolingPolicy allowEphemeralPorts allowLoopback
    allowMultipleDirsUnderSameDiskPartition allowShadedLedgerManagerFactoryClass
    allowStorageExpansion auditorAcquireConcurrentOpenLedgerOperationsTimeOutMSec
    auditorLedgerVerificationPercentage auditorMaxNumberOfConcurrentOpenLedgerOperations
    auditorPeriodicBookieCheckInterval auditorPeriodicCheckInterval authorizedRoles
    autoRecoveryDaemonEnabled bookieAddressResolverEnabled bookieAuthProviderFactoryClass
    bookieDeathWatchInterval bookieId bookiePort byteBufAllocatorSizeInitial
    byteBufAllocatorSizeMax byteBufAllocatorSizeMin codahaleStatsCSVEndpoint
    codahaleStatsGraphiteEndpoint codahaleStatsJmxEndpoint codahaleStatsOutputFrequencySeconds
    codahaleStatsPrefix codahaleStatsSlf4jEndpoint compactionMaxOutstandingRequests
    compactionRate compactionRateByBytes compactionRateByEntries dbStorage_directIOEntryLogger
    dbStorage_directIOEntryLoggerMaxFdCacheTimeSeconds
    dbStorage_directIOEntryLoggerReadBufferSizeMB
    dbStorage_directIOEntryLoggerTotalReadBufferSizeMB
    dbStorage_directIOEntryLoggerTotalWriteBufferSizeMB dbStorage_readAheadCacheBatchBytesSize
    dbStorage_readAheadCacheBatchSize dbStorage_readAheadCacheMaxSizeMb
    dbStorage_rocksDB_blockCacheSize dbStorage_rocksDB_blockSize
    dbStorage_rocksDB_bloomFilterBitsPerKey dbStorage_rocksDB_checksum_type
    dbStorage_rocksDB_format_version dbStorage_rocksDB_logPath
    dbStorage_rocksDB_maxSizeInLevel1MB dbStorage_rocksDB_numFilesInLevel0
    dbStorage_rocksDB_numLevels dbStorage_rocksDB_sstSizeInMB
    dbStorage_rocksDB_writeBufferSizeMB dbStorage_writeCacheMaxSizeMb defaultRocksdbConf
    digestType disableServerSocketBind diskCheckInterval diskUsageLwmThreshold
    diskUsageThreshold diskUsageWarnThreshold dlog.bkcAckQuorumSize dlog.bkcEnsembleSize
    dlog.bkcWriteQuorumSize enableBusyWait enableDigestTypeAutodetection enableLocalTransport
    enableStatistics enableTaskExecutionStats enforceMinNumFaultDomainsForWrite
    enforceMinNumRacksPerWriteQuorum ensemblePlacementPolicy entryLocationCompactionInterval
    entryLocationRocksdbConf entryLogFilePreallocationEnabled
    entryLogPerLedgerCounterLimitsMultFactor entryLogPerLedgerEnabled
    entrylogMapAccessExpiryTimeInSeconds exposeDefaultJVMMetrics extraServerComponents
    fileInfoCacheInitialCapacity fileInfoFormatVersionToWrite fileInfoMaxIdleTime
    flushEntrylogBytes flushInterval forceAllowCompaction forceReadOnlyBookie
    gcEntryLogMetadataCacheEnabled gcEntryLogMetadataCachePath gcMetadataOpRateLimit
    gcOverreplicatedLedgerMaxConcurrentRequests gcOverreplicatedLedgerWaitTime gcWaitTime
    httpServerClass httpServerEnabled httpServerHost httpServerKeyStorePassword
    httpServerKeyStorePath httpServerPort httpServerTlsEnable httpServerTrustStorePassword
    httpServerTrustStorePath ignoreExtraServerComponentsStartupFailures indexDirectories
    isForceGCAllowWhenNoSpace isThrottleByBytes journalAdaptiveGroupWrites journalAlignmentSize
    journalBufferedEntriesThreshold journalBufferedWritesThreshold journalChannelProvider
    journalDirectories journalDirectory journalFlushWhenQueueEmpty journalFormatVersionToWrite
    journalMaxBackups journalMaxGroupWaitMSec journalMaxMemorySizeMb journalMaxSizeMB
    journalPageCacheFlushIntervalMSec journalPreAllocSizeMB journalQueueSize
    journalRemoveFromPageCache journalSyncData journalWriteBufferSizeKB journalWriteData
    ledgerDirectories ledgerManagerFactoryClass ledgerManagerType ledgerMetadataRocksdbConf
    ledgerStorageClass listeningInterface logSizeLimit lostBookieRecoveryDelay
    majorCompactionInterval majorCompactionMaxTimeMillis majorCompactionThreshold
    maxPendingAddRequestsPerThread maxPendingReadRequestsPerThread
    maximumNumberOfActiveEntryLogs metadataServiceUri minNumRacksPerWriteQuorum
    minUsableSizeForEntryLogCreation minUsableSizeForHighPriorityWrites
    minUsableSizeForIndexFileCreation minorCompactionInterval minorCompactionMaxTimeMillis
    minorCompactionThreshold nettyMaxFrameSizeBytes networkTopologyScriptFileName
    networkTopologyScriptNumberArgs numAddWorkerThreads numHighPriorityWorkerThreads
    numLongPollWorkerThreads numOfMemtableFlushThreads numReadWorkerThreads openFileLimit
    openLedgerRereplicationGracePeriod pageLimit pageSize passwd permittedStartupUsers
    persistBookieStatusEnabled prometheusStatsHttpAddress prometheusStatsHttpPort
    prometheusStatsLatencyRolloverSeconds readBufferSizeBytes readOnlyModeEnabled
    readOnlyModeOnAnyDiskFullEnabled readWorkerThreadsThrottlingEnabled
    reorderReadSequenceEnabled reppDnsResolverClass requestTimerNumTicks
    requestTimerTickDurationMs rereplicationEntryBatchSize rwRereplicateBackoffMs
    sanityCheckMetricsEnabled serverNumIOThreads serverSockKeepalive serverTcpLinger
    serverTcpNoDelay shadedLedgerManagerFactoryClassPrefix skipListArenaChunkSize
    skipListArenaMaxAllocSize skipListSizeLimit sortedLedgerStorageEnabled statsProviderClass
    stickyReadSEnabled storage.cluster.controller.schedule.interval.ms storage.range.store.dirs
    storage.serve.readonly.tables storageserver.grpc.port
    storeSystemTimeAsLedgerUnderreplicatedMarkTime tlsCertFilesRefreshDurationSeconds
    tlsCertificatePath tlsClientAuthentication tlsKeyStore tlsKeyStorePasswordPath
    tlsKeyStoreType tlsProvider tlsProviderFactoryClass tlsTrustStore tlsTrustStorePasswordPath
    tlsTrustStoreType useHostNameAsBookieID useShortHostName useTargetEntryLogSizeForGc
    useTransactionalCompaction verifyMetadataOnGC writeBufferSizeBytes zkEnableSecurity
    zkLedgersRootPath zkReplicationTaskRateLimit zkRequestRateLimit zkRetryBackoffMaxMs
    zkRetryBackoffStartMs zkServers zkTimeout
    """,
)
"""Of `conf/bk_server.conf` of 4.18, commented out or not."""
VERBS = re.findall(
    r"\S+",
    """
    activeledgers autorecovery bookieformat bookieinfo bookiesanity check-db-ledgers-index
    clusterinfo convert-to-db-storage convert-to-interleaved-storage cookie_create cookie_delete
    cookie_generate cookie_get cookie_update decommissionbookie deleteledger endpointinfo
    forceauditchecks help initbookie initnewcluster lastmark ledger ledgermetadata listbookies
    listfilesondisc listledgers listunderreplicated localconsistencycheck
    lostbookierecoverydelay metaformat nukeexistingcluster queryautorecoverystatus readjournal
    readledger readlog readlogmetadata rebuild-db-ledger-locations-index
    rebuild-db-ledgers-index recover regenerate-interleaved-storage-index-file simpletest
    triggeraudit updateBookieInLedger updatecookie updateledgers whatisinstanceid whoisauditor
    """,
)
"""Of the shell of 4.18 (`BookieShell.java`)."""
SECTIONS = ("storage", "bookie", "limits")


def test_each_key_and_each_command_is_named() -> None:
    named = set(re.findall(r"`([^`]+)`", SECTION))
    assert [name for name in KEYS + VERBS if name not in named] == []


def test_the_settings_that_it_names_are_there() -> None:
    named = re.findall(rf"`((?:{'|'.join(SECTIONS)})\.[a-z_]+)`", SECTION)
    others = {name for name in named if name in KEYS}
    assert [name for name in named if name not in SETTINGS and name not in others] == []
    assert len(named) > 20
